//! Packs the generated texts, which the program holds (`src/cli/generated.rs`): 380 KB take 50 of them.

use std::error::Error;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// The folders of generated files, which are named by their paths in the repository.
const FOLDERS: [&str; 3] = ["man", "completions", "src/cli/topics"];

fn main() -> Result<(), Box<dyn Error>> {
    let mut files: Vec<(String, String)> = Vec::new();
    for folder in FOLDERS {
        println!("cargo::rerun-if-changed={folder}");
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            files.push((path.display().to_string(), fs::read_to_string(path)?));
        }
    }
    files.sort();
    let place = PathBuf::from(std::env::var("OUT_DIR")?).join("generated");
    let mut packed = DeflateEncoder::new(File::create(place)?, Compression::best());
    packed.write_all(&serde_json::to_vec(&files)?)?;
    packed.finish()?;
    Ok(())
}
