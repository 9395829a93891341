//! The page, in a real browser.

#[path = "page/browser.rs"]
mod browser;
#[path = "page/past.rs"]
mod past;
#[path = "page/stories.rs"]
mod stories;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use self::browser::{Look, measure, picture};
use self::past::Past;
use self::stories::{eight_jobs, hostile, many_jobs, write};
use crate::repository;
use crate::support::TOKENRUN;

const WIDTHS: [u32; 3] = [380, 800, 1_400];

/// One browser at a time: each takes some hundred megabytes.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn look(width: u32) -> Look {
    Look {
        width,
        height: 1_200,
        dark: false,
        window: "day",
    }
}

fn page_of(past: &Past) -> PathBuf {
    let page = past.store().file("page.html");
    write(past.store(), &page, &["--utc"]);
    page
}

/// What holds for each page.
#[track_caller]
fn assert_fits(page: &Path, groups: usize) -> Value {
    let mut last = Value::Null;
    for width in WIDTHS {
        let found = measure(page, look(width));
        assert_eq!(found["width"], width, "{found:#}");
        assert_eq!(
            found["scroll"], width,
            "it is wider than its window: {found:#}"
        );
        assert_eq!(found["wide"], serde_json::json!([]), "{found:#}");
        for nothing in ["scripts", "images", "links", "handlers", "requests"] {
            assert_eq!(found[nothing], 0, "{nothing}: {found:#}");
        }
        assert_eq!(found["names"].as_array().unwrap().len(), groups);
        assert!(
            found["first"]["day"].as_u64().unwrap() >= groups as u64,
            "{found:#}"
        );
        assert_eq!(
            (&found["first"]["week"], &found["first"]["month"]),
            (&0.into(), &0.into())
        );
        assert_eq!(
            (&found["then"]["month"], &found["then"]["day"]),
            (&found["first"]["day"], &0.into())
        );
        last = found;
    }
    last
}

#[test]
fn a_page_of_one_group_fits_its_window() {
    let _alone = alone();
    let past = Past::new();
    let page = page_of(&past);
    let found = assert_fits(&page, 1);
    assert_eq!(found["names"][0], "job");
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.contains("content=\"default-src 'none'; style-src 'unsafe-inline'\""));
    for request in ["http:", "https:", "url(", "@import", " src="] {
        assert!(!text.contains(request), "{request}");
    }
}

#[test]
fn a_page_of_fifty_groups_fits_its_window() {
    let _alone = alone();
    let past = many_jobs(49);
    let page = page_of(&past);
    assert_fits(&page, 50);
}

#[test]
fn a_page_of_five_hundred_groups_fits_its_window_and_is_light() {
    let _alone = alone();
    let past = many_jobs(499);
    let page = page_of(&past);
    let size = fs::metadata(&page).unwrap().len();
    assert!(size < 3_000_000, "{size}");
    let found = assert_fits(&page, 500);
    assert!(found["elements"].as_u64().unwrap() < 70_000, "{found:#}");
}

#[test]
fn names_that_look_like_html_stay_text() {
    let _alone = alone();
    let long = format!("long-{}", "x".repeat(190));
    let names = [
        "<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "&amp;",
        "' onload='alert(1)",
        "</title></style><svg/onload=alert(1)>",
        "]]>--><!--",
        long.as_str(),
    ];
    let mut past = Past::new();
    hostile(&mut past, &names);
    let page = past.store().file("page.html");
    write(past.store(), &page, &["--utc"]);
    let found = assert_fits(&page, names.len() + 1);
    for list in ["names", "summaries"] {
        let shown: Vec<&str> = found[list]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it.as_str().unwrap())
            .collect();
        for name in names {
            assert!(shown.contains(&name), "{name}: {shown:?}");
        }
    }
    assert!(
        found["title"].as_str().unwrap().ends_with("tokenrun"),
        "{found:#}"
    );
}

#[test]
fn light_and_dark_are_drawn_and_differ() {
    let _alone = alone();
    let past = eight_jobs();
    let page = page_of(&past);
    let blank = past.store().file("blank.html");
    fs::write(&blank, "<!DOCTYPE html><input id=day><input id=month>").unwrap();
    let drawn = |page: &Path, look: Look| {
        let file = past.store().file("picture.png");
        picture(page, look, &file);
        fs::read(&file).unwrap()
    };
    let (light, dark) = (
        look(1_400),
        Look {
            dark: true,
            ..look(1_400)
        },
    );
    let [on_white, on_black] = [light, dark].map(|look| measure(&page, look));
    assert_eq!(on_white["paper"], "rgb(255, 255, 255)");
    assert_ne!(on_white["paper"], on_black["paper"]);
    assert_ne!(on_white["ink"], on_black["ink"]);
    let empty = drawn(&blank, light).len();
    let [light, dark] = [light, dark].map(|look| drawn(&page, look));
    assert!(
        light.len() > 4 * empty && dark.len() > 4 * empty,
        "{empty}, {}, {}",
        light.len(),
        dark.len()
    );
    assert_ne!(light, dark);
}

/// The entry's command, with this test's file in the place of the web server's.
#[test]
fn the_example_for_cron_writes_the_page() {
    let past = Past::new();
    let example = fs::read_to_string(repository("examples/cron/page")).unwrap();
    let entry = example.lines().find(|line| line.starts_with("* ")).unwrap();
    let command: Vec<&str> = entry.split_whitespace().skip(6).collect();
    let (command, page) = (command.join(" "), past.store().file("jobs.html"));
    let named = "/var/www/html/jobs.html";
    assert!(command.contains(named), "{command}");
    let command = command.replace(named, page.to_str().unwrap());
    let command = command.replacen("tokenrun", TOKENRUN, 1);
    let store = past.store().file("store");
    fs::write(&store, past.store().database().to_str().unwrap()).unwrap();
    let shell = past.store().bare(&["-c", &command]).program("sh");
    let ended = shell.env("TOKENRUN_STORE_FILE", &store).end().with_code(0);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.contains("<meta http-equiv=\"refresh\" content=\"60\">"));
}

/// README.md's picture. TOKENRUN_GENERATE=1 takes it anew.
#[test]
fn the_picture_in_the_readme_is_there_and_small() {
    let file = repository("docs/page.png");
    if std::env::var_os("TOKENRUN_GENERATE").is_some() {
        let _alone = alone();
        let past = eight_jobs();
        let page = past.store().file("page.html");
        write(past.store(), &page, &["--utc"]);
        // Nothing in it is of the machine that made it.
        let own = past.store().database();
        let text = fs::read_to_string(&page).unwrap();
        let text = text.replace(own.to_str().unwrap(), "/var/lib/tokenrun/tokens.db");
        fs::write(&page, text).unwrap();
        picture(
            &page,
            Look {
                height: 1_300,
                window: "week",
                ..look(1_400)
            },
            &file,
        );
    }
    let picture = fs::read(&file).unwrap();
    assert!(picture.starts_with(b"\x89PNG\r\n"));
    assert!(picture.len() <= 200_000, "{} bytes", picture.len());
    let width: [u8; 4] = picture[16..20].try_into().unwrap();
    assert_eq!(u32::from_be_bytes(width), 1_400);
    assert!(crate::blocks::a_page_has("page.png)"));
}
