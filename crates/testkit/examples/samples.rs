//! Writes the samples as logs: `cargo run -p threadline-testkit --example samples -- FOLDER`.

#![allow(clippy::disallowed_methods, reason = "this is a tool for developers, with arguments and a disk")]

use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = env::args_os().nth(1).map_or_else(|| PathBuf::from("samples"), PathBuf::from);
    for sample in threadline_testkit::samples() {
        let agents = folder.join(sample.name).join("subagents");
        fs::create_dir_all(&agents)?;
        fs::write(folder.join(sample.name).with_extension("jsonl"), &sample.log)?;
        for (id, log) in &sample.agents {
            fs::write(agents.join(format!("agent-{id}.jsonl")), log)?;
        }
    }
    Ok(())
}
