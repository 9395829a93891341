//! A real browser without a screen: it opens a page in a frame of a given width, and says what it
//! has found in it.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::Value;

/// Debian's name; elsewhere it may be another.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// A browser that has not ended by then hangs. One that is slow does not: the page of 500 groups
/// took more than a minute beside four busy processes.
const LIMIT: Duration = Duration::from_secs(600);

/// Shows the page in a frame and measures it. A frame has any width, which a window has not, and
/// takes its colour scheme from the element that it stands in.
const FRAME: &str = r#"<!DOCTYPE html><meta charset="utf-8">
<style>html{background:#777;overflow:hidden}body{margin:0}iframe{display:block;border:0;width:WIDTHpx;height:HEIGHTpx;color-scheme:SCHEME}</style>
<iframe id="frame" src="PAGE"></iframe><pre id="found"></pre>
<script>
const frame = document.getElementById("frame");
function measure() {
  const page = frame.contentDocument, view = frame.contentWindow, root = page.documentElement;
  const all = [...page.querySelectorAll("body *")];
  const seen = element => element.getClientRects().length > 0;
  const clipped = element => element.closest("svg *, thead, .defs, .timeline li *, body > input");
  const folded = [...page.querySelectorAll("details:not([open])")], scroll = root.scrollWidth, height = root.scrollHeight;
  // A folded element is laid out by itself each time its place is asked for: 18 s for 500 groups.
  folded.forEach(it => it.open = true);
  const wide = all.filter(it => seen(it) && !clipped(it) && it.getBoundingClientRect().right > root.clientWidth + 1);
  const texts = selector => [...page.querySelectorAll(selector)].map(it => it.textContent);
  const shown = () => Object.fromEntries(["day", "week", "month"].map(it =>
    [it, [...page.querySelectorAll("svg." + it)].filter(seen).length]));
  const found = {width: root.clientWidth, scroll: Math.max(scroll, root.scrollWidth), height,
    wide: wide.slice(0, 5).map(it => it.outerHTML.slice(0, 120)), elements: all.length,
    title: page.title, names: texts(".groups tbody th"), summaries: texts("summary h3"), body: texts(".attention")[0] || "",
    scripts: page.scripts.length, images: page.images.length, links: texts("link").length,
    handlers: all.filter(it => [...it.attributes].some(a => a.name.startsWith("on"))).length,
    requests: view.performance.getEntriesByType("resource").length,
    paper: view.getComputedStyle(page.body).backgroundColor, ink: view.getComputedStyle(page.body).color,
    first: shown()};
  page.getElementById("month").click();
  found.then = shown();
  page.getElementById("WINDOW").click();
  folded.forEach(it => it.open = false);
  const text = JSON.stringify(found).replace(/[<>&\u0080-\uffff]/g, c => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
  document.getElementById("found").textContent = text;
}
frame.addEventListener("load", measure);
</script>"#;

/// How a page is opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) dark: bool,
    /// Which window of time is chosen.
    pub(crate) window: &'static str,
}

/// Opens a page, and gives what was found in it.
pub(crate) fn measure(page: &Path, look: Look) -> Value {
    let frame = frame(page, look);
    let dump = frame.with_extension("dump");
    browse(&frame, look, &["--dump-dom"], &dump);
    let text = fs::read_to_string(&dump).unwrap();
    let found = text.split_once("<pre id=\"found\">").map(|(_, rest)| rest);
    let found = found
        .and_then(|rest| rest.split_once("</pre>"))
        .map(|(found, _)| found);
    serde_json::from_str(found.unwrap_or_default()).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// Takes a picture of a page, as PNG.
pub(crate) fn picture(page: &Path, look: Look, picture: &Path) {
    let frame = frame(page, look);
    let words = format!("--screenshot={}", picture.display());
    browse(&frame, look, &[&words], &frame.with_extension("dump"));
}

fn frame(page: &Path, look: Look) -> PathBuf {
    let scheme = if look.dark { "dark" } else { "light" };
    let text = FRAME
        .replace("WIDTH", &look.width.to_string())
        .replace("HEIGHT", &look.height.to_string())
        .replace("SCHEME", scheme)
        .replace("WINDOW", look.window)
        .replace("PAGE", page.file_name().unwrap().to_str().unwrap());
    let frame = page.with_file_name(format!("frame-{}-{scheme}.html", look.width));
    fs::write(&frame, text).unwrap();
    frame
}

fn browse(frame: &Path, look: Look, words: &[&str], stdout: &Path) {
    let profile = tempfile::tempdir().unwrap();
    let errors = frame.with_extension("errors");
    let begun = Instant::now();
    let mut browser = Browser::start(|command| {
        command
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
            ])
            .args([
                "--hide-scrollbars",
                "--no-first-run",
                "--disable-extensions",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
            ])
            .args([
                "--allow-file-access-from-files",
                "--virtual-time-budget=10000",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(format!(
                "--window-size={},{}",
                look.width.max(500),
                look.height
            ))
            .args(words)
            .arg(format!("file://{}", frame.display()))
            .stdin(Stdio::null())
            .stdout(fs::File::create(stdout).unwrap())
            .stderr(fs::File::create(&errors).unwrap());
    });
    let status = loop {
        if let Some(status) = browser.0.try_wait().unwrap() {
            break status;
        }
        let said = || fs::read_to_string(&errors).unwrap();
        assert!(
            begun.elapsed() < LIMIT,
            "the browser does not end: {}",
            said()
        );
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(
        status.success(),
        "{status}: {}",
        fs::read_to_string(&errors).unwrap()
    );
}

/// A browser with all its processes, which end with it.
struct Browser(Child);

impl Browser {
    fn start(prepare: impl Fn(&mut Command)) -> Self {
        for name in NAMES {
            let mut command = Command::new(name);
            command.process_group(0);
            prepare(&mut command);
            if let Ok(child) = command.spawn() {
                return Self(child);
            }
        }
        panic!("none of {NAMES:?} can be started (tests/run-all installs chromium)");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let group = Pid::from_raw(i32::try_from(self.0.id()).unwrap());
        // It may be gone.
        let _ = killpg(group, Signal::SIGKILL);
        let _ = self.0.wait();
    }
}
