//! The image in the clipboard, through the program of the system that reads it.

use std::ffi::OsString;
use std::io::Write;
use std::process::Command;
use std::time::Duration;

use base64::Engine;
use tempfile::TempPath;
use threadline_agent::MAX_IMAGE_BYTES;

use super::limited_process::output_of;

/// The timeout of a program.
const LONGEST: Duration = Duration::from_secs(5);
/// Programs that write the image to standard output: Wayland, X11, macOS.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("wl-paste", &["--no-newline", "--type", "image/png"]),
    ("xclip", &["-selection", "clipboard", "-t", "image/png", "-o"]),
    ("pngpaste", &["-"]),
];
/// Prints the image as Base64, on Windows and in its subsystem for Linux.
const POWERSHELL: &str = "Add-Type -AssemblyName System.Windows.Forms, System.Drawing; \
    $image = [Windows.Forms.Clipboard]::GetImage(); if ($image) { $stream = New-Object IO.MemoryStream; \
    $image.Save($stream, [Drawing.Imaging.ImageFormat]::Png); [Convert]::ToBase64String($stream.ToArray()) }";

/// Saves the image of the clipboard in a temporary file.
///
/// # Errors
///
/// A sentence for the person: there is no image, or it cannot be used.
pub(super) fn save_image(environment: &[(OsString, OsString)]) -> Result<TempPath, String> {
    let run = |program: &str, args: &[&str], max_bytes| {
        let mut command = Command::new(program);
        command.args(args).env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
        output_of(&mut command, "", max_bytes, LONGEST).filter(|bytes| !bytes.is_empty())
    };
    let from_program = || PROGRAMS.iter().find_map(|(program, args)| run(program, args, MAX_IMAGE_BYTES + 1));
    let from_powershell = || {
        let args = ["-NoProfile", "-NonInteractive", "-Command", POWERSHELL];
        let text = run("powershell.exe", &args, MAX_IMAGE_BYTES * 4 / 3 + 8)?;
        base64::engine::general_purpose::STANDARD.decode(text.trim_ascii()).ok()
    };
    let image = from_program().or_else(from_powershell);
    let image = image
        .ok_or("There is no image in the clipboard, or no program to read it (wl-paste, xclip, pngpaste).")?;
    let extension = extension(&image).ok_or("The clipboard does not contain an image.")?;
    if image.len() as u64 > MAX_IMAGE_BYTES {
        return Err("The image in the clipboard is too large: at most 3.75 MB can be sent.".to_owned());
    }
    let file = tempfile::Builder::new().prefix("threadline-").suffix(extension).tempfile();
    let saved = file.and_then(|mut file| file.write_all(&image).map(|()| file.into_temp_path()));
    saved.map_err(|error| format!("The image cannot be saved: {error}"))
}

/// Returns the file extension of an image, from its first bytes.
fn extension(image: &[u8]) -> Option<&'static str> {
    match image {
        [0x89, b'P', b'N', b'G', ..] => Some(".png"),
        [0xff, 0xd8, 0xff, ..] => Some(".jpg"),
        [b'G', b'I', b'F', b'8', ..] => Some(".gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(".webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_known_by_their_first_bytes() {
        assert_eq!(extension(b"\x89PNG\r\n"), Some(".png"));
        assert_eq!(extension(b"RIFF....WEBPVP8"), Some(".webp"));
        assert_eq!(extension(b"some text"), None);
        assert_eq!(extension(b""), None);
    }
}
