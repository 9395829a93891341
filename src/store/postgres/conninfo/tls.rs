//! The options of TLS, and whether a file with a secret is kept from others.

use std::path::{Path, PathBuf};

use crate::store::net::options::{BadSettings, Environment, Options};
use crate::store::net::tls::{ClientCertificate, Roots, SslMode, Tls};

/// Who may read a file with a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Secrecy {
    /// Only its owner.
    Kept,
    /// It belongs to root, and root's group may read it besides.
    RootsGroup,
    /// Others may read it.
    Open,
    /// It is not a regular file.
    NoFile,
    /// It does not exist.
    Absent,
}

/// Tells who may read a file.
pub(super) fn secrecy(around: &dyn Environment, path: &Path) -> Secrecy {
    match around.status(path) {
        None => Secrecy::Absent,
        Some(found) if !found.is_file => Secrecy::NoFile,
        Some(found) if found.mode & 0o077 == 0 => Secrecy::Kept,
        Some(found) if found.is_roots && found.mode & 0o037 == 0 => Secrecy::RootsGroup,
        Some(_) => Secrecy::Open,
    }
}

pub(super) fn flag(options: &Options<'_>, name: &str) -> Result<bool, BadSettings> {
    Ok(options.number(name)? != Some(0))
}

pub(super) fn tls(options: &Options<'_>) -> Result<Tls, BadSettings> {
    use SslMode::{Allow, Disable, Prefer, Require, VerifyCa, VerifyFull};
    let said = options.get("sslrootcert");
    let system = said.as_deref() == Some("system");
    let default = if system { VerifyFull } else { Prefer };
    let mode = options.word(
        "sslmode",
        &[
            ("disable", Disable),
            ("allow", Allow),
            ("prefer", Prefer),
            ("require", Require),
            ("verify-ca", VerifyCa),
            ("verify-full", VerifyFull),
        ],
        default,
    )?;
    if system && mode != VerifyFull {
        return Err(BadSettings::of(
            "sslmode",
            "must be verify-full where sslrootcert is system",
        ));
    }
    let exists = |path: &PathBuf| options.exists(path);
    let file = said.filter(|_| !system).map(PathBuf::from);
    let file = file.or_else(|| options.in_home(".postgresql/root.crt"));
    let roots = if system {
        Some(Roots::System)
    } else {
        file.clone().filter(exists).map(Roots::File)
    };
    if roots.is_none() && matches!(mode, VerifyCa | VerifyFull) {
        let file = file.map_or_else(
            || "~/.postgresql/root.crt".into(),
            |f| f.display().to_string(),
        );
        return Err(BadSettings::new(format!(
            "the root certificate file {file} does not exist: provide it, use sslrootcert=system, or change sslmode"
        )));
    }
    let (min, max) = (
        version(options, "ssl_min_protocol_version")?,
        version(options, "ssl_max_protocol_version")?,
    );
    if max.is_some_and(|max| max < 2) {
        return Err(BadSettings::of(
            "ssl_max_protocol_version",
            "asks for less than TLSv1.2, which tokenrun does not support",
        ));
    }
    let (only_13, only_12) = (min == Some(3), max == Some(2));
    if only_13 && only_12 {
        return Err(BadSettings::of(
            "ssl_min_protocol_version",
            "is above ssl_max_protocol_version",
        ));
    }
    Ok(Tls {
        mode,
        roots,
        client: client_certificate(options, mode)?,
        sni: flag(options, "sslsni")?,
        only_13,
        only_12,
    })
}

/// The number after `TLSv1.`.
fn version(options: &Options<'_>, name: &str) -> Result<Option<u8>, BadSettings> {
    let words = [
        ("TLSv1", Some(0)),
        ("TLSv1.1", Some(1)),
        ("TLSv1.2", Some(2)),
        ("TLSv1.3", Some(3)),
    ];
    options.word(name, &words, None)
}

fn client_certificate(
    options: &Options<'_>,
    mode: SslMode,
) -> Result<Option<ClientCertificate>, BadSettings> {
    if mode == SslMode::Disable {
        return Ok(None);
    }
    let file = |name: &str, default: &str| {
        let said = options.get(name).map(PathBuf::from);
        said.or_else(|| options.in_home(default))
    };
    let certificate = file("sslcert", ".postgresql/postgresql.crt");
    let Some(certificate) = certificate.filter(|path| options.exists(path)) else {
        return Ok(None);
    };
    let Some(key) = file("sslkey", ".postgresql/postgresql.key") else {
        return Ok(None);
    };
    let shown = key.display();
    match secrecy(options.around, &key) {
        Secrecy::Kept | Secrecy::RootsGroup => Ok(Some(ClientCertificate { certificate, key })),
        Secrecy::Open => Err(BadSettings::new(format!(
            "others may read the private key file {shown}: chmod 600 {shown}"
        ))),
        Secrecy::NoFile | Secrecy::Absent => Err(BadSettings::new(format!(
            "the certificate {} has no private key file {shown}",
            certificate.display()
        ))),
    }
}
