use crate::testing::Fixture;

fn read(fixture: &Fixture, name: &str) -> String {
    fixture.text("Read", &format!(r#"{{"file_path": "$CWD/{name}"}}"#))
}

#[test]
fn text_is_returned_with_line_numbers() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "alpha\nbeta\ngamma\n");
    let output = fixture.run("Read", r#"{"file_path": "$CWD/a.txt"}"#);
    assert_eq!(output.text(), "1\talpha\n2\tbeta\n3\tgamma\n4\t");
    assert_eq!(
        fixture.masked(output.record.unwrap().get()),
        r#"{"type":"text","file":{"filePath":"$CWD/a.txt","content":"alpha\nbeta\ngamma\n","numLines":4,"startLine":1,"totalLines":4}}"#
    );
    fixture.put("bare.txt", "no newline at the end");
    assert_eq!(read(&fixture, "bare.txt"), "1\tno newline at the end");
}

#[test]
fn a_range_of_lines_is_returned() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "alpha\nbeta\ngamma\n");
    let record = |range: &str| fixture.record("Read", &format!(r#"{{"file_path": "$CWD/a.txt", {range}}}"#));
    let expected = |content: &str, lines: u32, start: u32| {
        format!(
            r#"{{"type":"text","file":{{"filePath":"$CWD/a.txt","content":"{content}","numLines":{lines},"startLine":{start},"totalLines":4}}}}"#
        )
    };
    assert_eq!(record(r#""limit": 2"#), expected(r"alpha\nbeta", 2, 1));
    assert_eq!(record(r#""offset": 2"#), expected(r"beta\ngamma\n", 3, 2));
    assert_eq!(record(r#""offset": 0"#), expected(r"alpha\nbeta\ngamma\n", 4, 0));
    assert_eq!(record(r#""offset": 4"#), expected("", 1, 4));
    assert_eq!(record(r#""offset": 5"#), expected("", 0, 5));
    assert_eq!(record(r#""limit": "2", "offset": "1""#), expected(r"alpha\nbeta", 2, 1));
}

#[test]
fn an_offset_past_the_end_is_a_warning() {
    let fixture = Fixture::new();
    fixture.put("empty.txt", "");
    assert_eq!(
        read(&fixture, "empty.txt"),
        "<system-reminder>Warning: the file exists but is shorter than the provided offset (1). The file has 1 lines.\
         </system-reminder>"
    );
}

#[test]
fn offset_zero_counts_from_zero() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "x\ny");
    assert_eq!(fixture.text("Read", r#"{"file_path": "$CWD/a.txt", "offset": 0}"#), "0\tx\n1\ty");
    // A negative offset counts as missing.
    assert_eq!(fixture.text("Read", r#"{"file_path": "$CWD/a.txt", "offset": -1}"#), "1\tx\n2\ty");
}

#[test]
fn marks_carriage_returns_and_invalid_bytes_are_hidden() {
    let fixture = Fixture::new();
    fixture.put("bom.txt", "\u{FEFF}a\r\nb\r\n");
    assert_eq!(read(&fixture, "bom.txt"), "1\ta\n2\tb\n3\t");
    fixture.put("cr.txt", "a\rb");
    assert_eq!(read(&fixture, "cr.txt"), "1\ta\rb");
    fixture.put("latin.txt", b"caf\xe9");
    assert_eq!(read(&fixture, "latin.txt"), "1\tcaf\u{FFFD}");
    fixture.put("crlf.txt", "a\r\nb\r\nc\r\n");
    assert_eq!(fixture.text("Read", r#"{"file_path": "$CWD/crlf.txt", "offset": 2, "limit": 1}"#), "2\tb");
}

#[test]
fn a_repeated_read_of_an_unchanged_file_is_a_note() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "x\n");
    let note =
        "Wasted call — file unchanged since your last Read. Refer to that earlier tool_result instead.";
    assert_eq!(read(&fixture, "a.txt"), "1\tx\n2\t");
    assert_eq!(fixture.text("Read", r#"{"file_path": " sub/../a.txt "}"#), note);
    assert_eq!(
        fixture.record("Read", r#"{"file_path": "a.txt", "offset": 1}"#),
        r#"{"type":"file_unchanged","file":{"filePath":"a.txt"}}"#
    );
    assert_eq!(fixture.text("Read", r#"{"file_path": "a.txt", "limit": 9}"#), "1\tx\n2\t");
    fixture.touch_later("a.txt");
    assert_eq!(fixture.text("Read", r#"{"file_path": "a.txt", "limit": 9}"#), "1\tx\n2\t");
}

#[test]
fn a_missing_file_names_the_folder_and_a_similar_file() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "x");
    assert_eq!(
        read(&fixture, "none.txt"),
        "ERR File does not exist. Note: your current working directory is $CWD."
    );
    assert_eq!(
        read(&fixture, "a.tx"),
        "ERR File does not exist. Note: your current working directory is $CWD. Did you mean a.txt?"
    );
    assert_eq!(
        read(&fixture, "../a.txt"),
        "ERR File does not exist. Note: your current working directory is $CWD. Did you mean $CWD/a.txt?"
    );
    assert_eq!(read(&fixture, "a.txt/x"), "ERR ENOTDIR: not a directory, statx '$CWD/a.txt/x'");
}

#[test]
fn folders_are_refused() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("sub")).unwrap();
    assert_eq!(read(&fixture, "sub"), "ERR EISDIR: illegal operation on a directory, read '$CWD/sub'");
    assert_eq!(read(&fixture, "sub/"), "ERR EISDIR: illegal operation on a directory, read '$CWD/sub/'");
    fixture.put("file", "x");
    assert_eq!(read(&fixture, "file/"), "ERR ENOTDIR: not a directory, statx '$CWD/file/'");
    assert_eq!(
        fixture.text("Read", r#"{"file_path": ""}"#),
        "ERR EISDIR: illegal operation on a directory, read '$CWD'"
    );
}

#[test]
fn large_files_are_refused_without_a_limit() {
    let fixture = Fixture::new();
    fixture.put("big.txt", "0123456789abcdef 0123456789abcdef\n".repeat(9000));
    let expected = "ERR File content (298.8KB) exceeds maximum allowed size (256KB). Use offset and limit parameters to \
                    read specific portions of the file, or search for specific content instead of reading the whole \
                    file.";
    assert_eq!(read(&fixture, "big.txt"), expected);
    assert_eq!(
        fixture.text("Read", r#"{"file_path": "big.txt", "offset": 9000, "limit": 3}"#),
        "9000\t0123456789abcdef 0123456789abcdef\n9001\t"
    );
}

#[test]
fn binary_files_are_refused_by_their_extension() {
    let fixture = Fixture::new();
    fixture.put("x.DAT", "text");
    assert_eq!(
        read(&fixture, "x.DAT"),
        "ERR <tool_use_error>This tool cannot read binary files. The file appears to be a binary .dat file. Please use \
         appropriate tools for binary file analysis.</tool_use_error>"
    );
    assert!(super::BINARY_EXTENSIONS.is_sorted());
}

#[cfg(unix)]
#[test]
fn devices_and_pipes_are_refused_without_opening_them() {
    let fixture = Fixture::new();
    let refused = |path: &str| {
        format!(
            "ERR <tool_use_error>Cannot read '{path}': this device file would block or produce infinite output.\
             </tool_use_error>"
        )
    };
    for path in ["/dev/zero", "/dev/stdin", "/proc/self/fd/0", "/proc/self/mem", "/dev/tty"] {
        assert_eq!(fixture.text("Read", &format!(r#"{{"file_path": "{path}"}}"#)), refused(path));
    }
    let fifo = fixture.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    assert_eq!(read(&fixture, "pipe"), refused("$CWD/pipe"));
}

#[test]
fn null_bytes_in_paths_are_refused() {
    let fixture = Fixture::new();
    assert_eq!(
        fixture.text("Read", r#"{"file_path": "a\u0000b"}"#),
        "ERR <tool_use_error>Path contains null bytes</tool_use_error>"
    );
}

#[test]
fn images_are_returned_as_blocks() {
    use base64::Engine as _;
    let fixture = Fixture::new();
    let base64 = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFUlEQVR4nGM4wcBwgkGD4YQcEGkAABtIA62WSq4/AAAAAElFTkSuQmCC";
    fixture.put("dot.png", base64::engine::general_purpose::STANDARD.decode(base64).unwrap());
    let input = r#"{"file_path": "$CWD/dot.png"}"#;
    assert_eq!(
        fixture.text("Read", input),
        format!(
            r#"{{"type":"image","source":{{"type":"base64","data":"{base64}","media_type":"image/png"}}}}"#
        )
    );
    assert_eq!(
        fixture.record("Read", input),
        format!(
            r#"{{"type":"image","file":{{"base64":"{base64}","type":"image/png","originalSize":78,"dimensions":{{"originalWidth":2,"originalHeight":2,"displayWidth":2,"displayHeight":2}}}}}}"#
        )
    );
}

/// Returns a PNG of random pixels, which do not compress.
fn noise(width: u32, height: u32) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let image = image::RgbImage::from_fn(width, height, |_, _| image::Rgb([next(), next(), next()]));
    let mut out = std::io::Cursor::new(Vec::new());
    image.write_to(&mut out, image::ImageFormat::Png).unwrap();
    out.into_inner()
}

#[test]
fn large_images_are_scaled_down() {
    let fixture = Fixture::new();
    fixture.put("wide.png", noise(300, 100));
    let mut small = Fixture::new();
    small.limits.image_side = 200;
    small.put("wide.png", noise(300, 100));
    assert!(fixture.run("Read", r#"{"file_path": "wide.png"}"#).follow_up.is_empty());
    let output = small.run("Read", r#"{"file_path": "wide.png"}"#);
    let record = output.record.unwrap().get().to_owned();
    let end =
        r#""dimensions":{"originalWidth":300,"originalHeight":100,"displayWidth":200,"displayHeight":67}}}"#;
    assert!(record.ends_with(end) && record.contains("image/png"), "{}", &record[record.len() - 200..]);
    assert_eq!(
        output.follow_up[0].get(),
        r#"{"type":"text","text":"[Image: original 300x100, displayed at 200x67. Multiply coordinates by 1.50 to map to original image.]"}"#
    );
}

#[test]
fn heavy_images_become_jpeg() {
    let mut fixture = Fixture::new();
    fixture.put("noise.png", noise(300, 300));
    fixture.limits.image_bytes = 100_000;
    let record = fixture.record("Read", r#"{"file_path": "noise.png"}"#);
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    assert_eq!(record["file"]["type"], "image/jpeg");
    assert!(record["file"]["base64"].as_str().unwrap().len() <= 134_000);
}

#[test]
fn files_that_are_no_images_are_refused() {
    let fixture = Fixture::new();
    fixture.put("fake.png", "not a png");
    assert_eq!(
        read(&fixture, "fake.png"),
        "ERR File has an image extension but its content is not a valid PNG/JPEG/GIF/WebP. Detected: unrecognized bytes \
         (hex: 6e 6f 74 20 61 20 70 6e). This usually means a download saved an error/login page instead of the image. \
         Use `file \"$CWD/fake.png\"` to confirm, or read it as text with Bash (e.g. `head -c 500`)."
    );
    for (content, detected) in [
        ("<!DOCTYPE html>\n<html><head>", "HTML document (starts with \"<!DOCTYPE html>.<html><h\")"),
        ("<svg xmlns='x'/>", "XML/SVG document (starts with \"<svg xmlns='x'/>\")"),
        ("[1,2]", "JSON/text (starts with \"[1,2]\")"),
        ("%PDF-1.4", "PDF document"),
    ] {
        fixture.put("page.png", content);
        let text = read(&fixture, "page.png");
        assert!(text.contains(&format!(" Detected: {detected}. This usually")), "{text}");
    }
    fixture.put("empty.png", "");
    assert_eq!(read(&fixture, "empty.png"), "ERR Image file is empty: $CWD/empty.png");
}

#[test]
fn notebooks_are_returned_as_cells() {
    let fixture = Fixture::new();
    let cells = r##"{"cells": [
        {"cell_type": "markdown", "id": "m1", "metadata": {}, "source": ["# Title\n", "text"]},
        {"cell_type": "code", "execution_count": 1, "metadata": {}, "source": "print(1 + 2)",
         "outputs": [{"output_type": "stream", "name": "stdout", "text": ["3\n"]},
                     {"output_type": "display_data", "data": {"text/plain": "<fig>", "image/png": "AAAA\n"}},
                     {"output_type": "error", "ename": "E", "evalue": "bad", "traceback": ["t1", "t2"]}]}],
        "metadata": {"language_info": {"name": "R"}}, "nbformat": 4, "nbformat_minor": 5}"##;
    fixture.put("n.ipynb", cells);
    let input = r#"{"file_path": "$CWD/n.ipynb"}"#;
    let output = fixture.run("Read", input);
    let crate::output::ResultContent::Blocks(blocks) = output.content else { panic!("no blocks") };
    let blocks: Vec<_> = blocks.iter().map(|block| block.get()).collect();
    assert_eq!(
        blocks,
        [
            r##"{"text":"<cell id=\"m1\"><cell_type>markdown</cell_type># Title\ntext</cell id=\"m1\">\n<cell id=\"cell-1\"><language>R</language>print(1 + 2)</cell id=\"cell-1\">\n\n3\n\n\n<fig>","type":"text"}"##,
            r#"{"type":"image","source":{"type":"base64","data":"AAAA","media_type":"image/png"}}"#,
            r#"{"text":"\nE: bad\nt1\nt2","type":"text"}"#
        ]
    );
    assert_eq!(
        fixture.masked(output.record.unwrap().get()),
        r##"{"type":"notebook","file":{"filePath":"$CWD/n.ipynb","cells":[{"cellType":"markdown","source":"# Title\ntext","cell_id":"m1"},{"cellType":"code","source":"print(1 + 2)","execution_count":1,"cell_id":"cell-1","language":"R","outputs":[{"output_type":"stream","text":"3\n"},{"output_type":"display_data","text":"<fig>","image":{"image_data":"AAAA","media_type":"image/png"}},{"output_type":"error","text":"E: bad\nt1\nt2"}]}]}}"##
    );
}

#[test]
fn broken_notebooks_are_refused() {
    let fixture = Fixture::new();
    fixture.put("n.ipynb", "{not json");
    assert_eq!(
        read(&fixture, "n.ipynb"),
        "ERR Notebook file is not valid JSON (it may be truncated, corrupted, or still being written): JSON Parse error: \
         Expected '}'"
    );
    fixture.put("c.ipynb", r#"{"cells": 5}"#);
    assert_eq!(
        read(&fixture, "c.ipynb"),
        "ERR Notebook file is not a valid Jupyter notebook (top-level \"cells\" must be an array of cell objects)."
    );
    fixture.put("e.ipynb", r#"{"cells": []}"#);
    assert_eq!(read(&fixture, "e.ipynb"), "(Read completed with no output)");
}

#[test]
fn a_pdf_is_a_document_after_the_result() {
    let fixture = Fixture::new();
    fixture.put("p.pdf", "%PDF-1.4\nfoo");
    let output = fixture.run("Read", r#"{"file_path": "$CWD/p.pdf"}"#);
    assert_eq!(fixture.masked(output.text()), "PDF file read: $CWD/p.pdf (12 bytes)");
    let follow_up: Vec<_> = output.follow_up.iter().map(|block| block.get()).collect();
    assert_eq!(
        follow_up,
        [
            r#"{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0xLjQKZm9v"}}"#
        ]
    );
    fixture.put("bad.pdf", "hello");
    assert_eq!(read(&fixture, "bad.pdf"), "ERR File is not a valid PDF (missing %PDF- header): $CWD/bad.pdf");
}

#[test]
fn the_older_profile_has_its_own_texts() {
    let fixture = Fixture::with_profile(&crate::Profile::V2_1_20);
    fixture.put("a.txt", "alpha\n");
    assert_eq!(read(&fixture, "a.txt"), "     1→alpha\n     2→");
    assert_eq!(read(&fixture, "a.txt"), "     1→alpha\n     2→");
    assert_eq!(read(&fixture, "none"), "ERR <tool_use_error>File does not exist.</tool_use_error>");
    assert_eq!(read(&fixture, ""), "ERR EISDIR: illegal operation on a directory, read");
}

/// Puts programs into a folder that is searched first.
#[cfg(unix)]
fn with_poppler(fixture: &mut Fixture, pages: u32) {
    use std::os::unix::fs::PermissionsExt;
    let bin = fixture.outside("bin");
    std::fs::create_dir(&bin).unwrap();
    let render = "#!/bin/sh\nfor last; do :; done\nprintf one > $last-1.jpg\nprintf two > $last-2.jpg\n";
    for (name, script) in
        [("pdfinfo", format!("#!/bin/sh\necho 'Pages:          {pages}'\n")), ("pdftoppm", render.to_owned())]
    {
        std::fs::write(bin.join(name), script).unwrap();
        std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    fixture.environment.push(("PATH".into(), format!("{}:/usr/bin:/bin", bin.display()).into()));
}

#[cfg(unix)]
#[test]
fn pages_of_a_pdf_are_images_after_the_result() {
    let mut fixture = Fixture::new();
    with_poppler(&mut fixture, 11);
    fixture.put("a.pdf", "%PDF-1.4\nfoo");
    assert_eq!(
        read(&fixture, "a.pdf"),
        "ERR This PDF has 11 pages, which is too many to read at once. Use the pages parameter to read specific page \
         ranges (e.g., pages: \"1-5\"). Maximum 20 pages per request."
    );
    let output = fixture.run("Read", r#"{"file_path": "$CWD/a.pdf", "pages": "1-2"}"#);
    assert_eq!(fixture.masked(output.text()), "PDF pages extracted: 2 page(s) from $CWD/a.pdf (12 bytes)");
    let blocks: Vec<_> = output.follow_up.iter().map(|block| block.get()).collect();
    let image = |data: &str| {
        format!(
            r#"{{"type":"image","source":{{"type":"base64","media_type":"image/jpeg","data":"{data}"}}}}"#
        )
    };
    assert_eq!(blocks, [image("b25l"), image("dHdv")]);
    let record = fixture.masked(output.record.unwrap().get());
    let start = r#"{"type":"parts","file":{"filePath":"$CWD/a.pdf","originalSize":12,"outputDir":"$ROOT/tool-results/pdf-"#;
    assert!(record.starts_with(start) && record.ends_with(r#","count":2}}"#), "{record}");
}

#[test]
fn pages_need_poppler() {
    let mut fixture = Fixture::new();
    fixture.environment.push(("PATH".into(), "/nonexistent".into()));
    fixture.put("a.pdf", "%PDF-1.4\nfoo");
    let text = fixture.text("Read", r#"{"file_path": "a.pdf", "pages": "1"}"#);
    assert!(text.starts_with("ERR pdftoppm is not installed. Install poppler-utils"), "{text}");
    assert!(read(&fixture, "a.pdf").starts_with("PDF file read: "));
}
