//! TLS: the certificate is verified, for this very host.

use std::path::Path;

use nix::sys::signal::Signal;

use crate::site::Site;

/// Runs on a store that an operator calls new, with this URL, whose server has a certificate for localhost. Other
/// certificates and names are refused. Returns the URL with the files in this folder.
pub(crate) fn is_trusted_by_its_certificate(at: &str, folder: &Path) -> String {
    let file = |name: &str| folder.join(name).display().to_string();
    let own = format!("cert={}&key={}", file("client.crt"), file("client.key"));
    let known = format!("{at}?cacert={}&{own}", file("ca.crt"));
    let site = Site::new(known.clone());
    site.verb(&["init"]).end().with_code(0);
    site.short("a").end().with_code(0);
    // With a watch.
    let holder = site.run("a").start();
    site.store.until_begun("a");
    let waiter = site.run("b").with(&["--wait"]).job(&["true"]).start();
    waiter.until_says("waiting");
    holder.signal(Signal::SIGTERM);
    waiter.end().with_code(0);
    for (url, says) in [
        (format!("{at}?{own}"), "UnknownIssuer"),
        (known.replace("ca.crt", "other.crt"), "UnknownIssuer"),
        (
            known.replace("localhost", "127.0.0.1"),
            "not valid for name",
        ),
        (known.replace("client.key", "nowhere.key"), "nowhere.key"),
    ] {
        Site::new(url).short("a").end().with_code(78).says(&[says]);
    }
    let doctor = site.verb(&["doctor"]).end().with_code(0).stdout;
    assert!(
        doctor.contains("encrypted, and the certificate is good"),
        "{doctor}"
    );
    known
}
