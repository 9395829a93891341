//! Logging in: the handshake, TLS, and the proof of who the client is.
//!
//! The password itself is sent over TLS or a Unix socket only. A server that wants it over a plain connection
//! gets neither the password nor, as other clients do it, the password encrypted with a key that the server
//! sends along: that key may be anybody's.

use std::collections::HashMap;
use std::sync::Arc;

use mysql_common::constants::CapabilityFlags as Can;
use mysql_common::io::ParseBuf;
use mysql_common::packets::{AuthPlugin, HandshakePacket, HandshakeResponse, SslRequest};
use mysql_common::proto::{MyDeserialize, MySerialize};
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;

use super::conninfo::Settings;
use super::fault::{Fault, Said};
use super::wire::{Wire, refusal};
use crate::store::net::deadline::Activity;
use crate::store::net::dial::Stream;
use crate::store::net::host::{Host, Place};
use crate::store::net::tls::{Insecure, SslMode, config};

/// The longest statement, which is also what servers take by default.
const LONGEST: u32 = 16 * 1024 * 1024;

/// A version that knows utf8mb4, as every supported one does. To read the server's own would take a
/// library for patterns.
const NEW: (u16, u16, u16) = (8, 0, 0);

/// What the client can do. Nothing that makes the server send other packets than [`Wire`] reads.
const CAPABILITIES: [Can; 10] = [
    Can::CLIENT_LONG_PASSWORD,
    Can::CLIENT_LONG_FLAG,
    Can::CLIENT_PROTOCOL_41,
    Can::CLIENT_TRANSACTIONS,
    Can::CLIENT_SECURE_CONNECTION,
    Can::CLIENT_MULTI_STATEMENTS,
    Can::CLIENT_MULTI_RESULTS,
    Can::CLIENT_PLUGIN_AUTH,
    Can::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA,
    Can::CLIENT_CONNECT_ATTRS,
];

/// A connection that is logged in.
pub(super) struct LoggedIn {
    pub(super) wire: Wire,
    /// True if it uses TLS.
    pub(super) secured: bool,
    /// The session's number.
    pub(super) session: u32,
}

struct Login<'a> {
    settings: &'a Settings,
    password: Option<&'a str>,
    wire: Wire,
    /// True if it uses TLS.
    secured: bool,
    /// True if it is a Unix socket, which others can't read.
    is_socket: bool,
    plugin: AuthPlugin<'static>,
    nonce: Vec<u8>,
}

fn io(error: std::io::Error) -> Fault {
    Fault::Io(Activity::LoggingIn, error)
}

/// The client can't, or won't, give the proof that the server wants.
fn unable(what: impl Into<String>) -> Fault {
    Fault::Said(Said::Login(what.into()))
}

/// The server's first packet. A length of the nonce above 127 is refused: `mysql_common` takes it for a signed number and
/// subtracts from it, which panics where overflows are checked.
fn greeting(packet: &[u8]) -> std::io::Result<HandshakePacket<'_>> {
    // The length is 20 bytes behind the end of the server's version, which begins at 1.
    let end = packet.iter().skip(1).position(|byte| *byte == 0);
    let length = end.and_then(|end| packet.get(1 + end + 1 + 20));
    if length.is_some_and(|length| i8::try_from(*length).is_err()) {
        let what = "the nonce has no length that the protocol knows";
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, what));
    }
    HandshakePacket::deserialize((), &mut ParseBuf(packet))
}

/// Logs in over a stream.
pub(super) async fn log_in(
    settings: &Settings,
    host: &Host,
    stream: Box<dyn Stream>,
) -> Result<LoggedIn, Fault> {
    let mut wire = Wire::new(stream);
    let packet = wire.read().await.map_err(io)?;
    if packet.first() == Some(&0xff) {
        return Err(refusal(&packet));
    }
    let hello = greeting(&packet).map_err(io)?;
    let (offered, session) = (hello.capabilities(), hello.connection_id());
    let nonce = hello.nonce();
    let plugin = match hello.auth_plugin() {
        Some(AuthPlugin::CachingSha2Password) => AuthPlugin::CachingSha2Password,
        _ => AuthPlugin::MysqlNativePassword,
    };
    let wanted = CAPABILITIES
        .into_iter()
        .fold(Can::empty(), |all, one| all | one);
    let mut can = wanted & offered;
    // The request for TLS has them too: the server takes them from the first packet.
    if settings.takes_database {
        can |= Can::CLIENT_CONNECT_WITH_DB;
    }
    let is_socket = host.is_unix();
    let mode = settings.tls.mode;
    let offers_tls = offered.contains(Can::CLIENT_SSL);
    let secured = !is_socket && mode != SslMode::Disable && offers_tls;
    if secured {
        can |= Can::CLIENT_SSL;
        wire = secure(settings, host, wire, can).await?;
    } else if !is_socket && mode > SslMode::Prefer {
        let what = "the server does no TLS, and ssl-mode demands it";
        return Err(Fault::Tls(Insecure::NotOffered, what.into()));
    }
    let password = host.password.as_ref().map(|it| it.0.as_str());
    let mut login = Login {
        settings,
        password: password.filter(|it| !it.is_empty()),
        wire,
        secured,
        is_socket,
        plugin,
        nonce,
    };
    login.answer(can).await?;
    login.finish().await?;
    Ok(LoggedIn {
        wire: login.wire,
        secured,
        session,
    })
}

async fn secure(settings: &Settings, host: &Host, mut wire: Wire, can: Can) -> Result<Wire, Fault> {
    let other = |text| Fault::Tls(Insecure::Other, text);
    let config = config(&settings.tls).map_err(other)?;
    let Place::Tcp { to, .. } = &host.place else {
        return Err(Fault::nonsense("TLS over a socket"));
    };
    let name = ServerName::try_from(to.clone()).map_err(|error| other(error.to_string()))?;
    // 45 is utf8mb4_general_ci, which every server knows.
    write(&mut wire, &SslRequest::new(can, LONGEST, 45)).await?;
    let (stream, number) = wire.into_stream();
    let connector = TlsConnector::from(Arc::new(config));
    let stream = connector
        .connect(name, stream)
        .await
        .map_err(|error| Fault::of_handshake(Activity::LoggingIn, error))?;
    Ok(Wire::over(Box::new(stream), number))
}

async fn write(wire: &mut Wire, packet: &impl MySerialize) -> Result<(), Fault> {
    let mut bytes = Vec::new();
    packet.serialize(&mut bytes);
    wire.write(&bytes).await.map_err(io)
}

impl Login<'_> {
    /// The proof that the present plugin wants.
    fn proof(&self) -> Result<Vec<u8>, Fault> {
        let Some(password) = self.password else {
            return Ok(Vec::new());
        };
        let proves = match self.plugin {
            AuthPlugin::MysqlNativePassword | AuthPlugin::CachingSha2Password => {
                self.nonce.len() >= 20
            }
            AuthPlugin::Ed25519 => self.nonce.len() >= 32,
            AuthPlugin::MysqlClearPassword => return self.password_itself(),
            AuthPlugin::Other(ref name) if name.as_ref() == b"sha256_password" => {
                // Over a socket the server takes it encrypted only.
                if !self.secured {
                    return Err(unable(
                        "the server wants a login by sha256_password, which is done over TLS only",
                    ));
                }
                return self.password_itself();
            }
            _ => return Err(self.unknown_plugin()),
        };
        if !proves {
            return Err(Fault::nonsense("a login without a challenge"));
        }
        let data = self.plugin.gen_data(Some(password), &self.nonce);
        Ok(data.map(|data| data.to_vec()).unwrap_or_default())
    }

    /// The password, for a connection that others can't read.
    fn password_itself(&self) -> Result<Vec<u8>, Fault> {
        if !self.secured && !self.is_socket {
            return Err(unable(
                "the server wants the password itself, which is sent over TLS or a Unix socket only",
            ));
        }
        let mut bytes = self.password.unwrap_or_default().as_bytes().to_vec();
        bytes.push(0);
        Ok(bytes)
    }

    fn unknown_plugin(&self) -> Fault {
        let name = String::from_utf8_lossy(self.plugin.as_bytes()).into_owned();
        unable(format!(
            "the server wants a login by {name:?}, which tokenrun does not know"
        ))
    }

    async fn answer(&mut self, can: Can) -> Result<(), Fault> {
        let attributes = HashMap::from([
            ("_client_name".to_owned(), "tokenrun".to_owned()),
            (
                "program_name".to_owned(),
                self.settings.application_name.clone(),
            ),
        ]);
        let attributes = can
            .contains(Can::CLIENT_CONNECT_ATTRS)
            .then_some(attributes);
        let proof = self.proof()?;
        let database = self.settings.takes_database;
        let database = database.then_some(self.settings.database.as_bytes());
        let response = HandshakeResponse::new(
            Some(proof),
            NEW,
            Some(self.settings.user.as_bytes()),
            database,
            Some(self.plugin.clone()),
            can,
            attributes,
            LONGEST,
        );
        write(&mut self.wire, &response).await
    }

    /// Takes another plugin: its name, a zero, and its challenge. That ends with a zero too, unless it is
    /// Ed25519's, whose last byte may be any.
    fn switch(&mut self, asked: &[u8]) {
        let mut parts = asked.splitn(2, |byte| *byte == 0);
        let name = parts.next().unwrap_or_default();
        let challenge = parts.next().unwrap_or_default();
        self.plugin = AuthPlugin::from_bytes(name).into_owned();
        let length = match self.plugin {
            AuthPlugin::Ed25519 => 32,
            _ => 20,
        };
        self.nonce = challenge.get(..length).unwrap_or(challenge).to_vec();
    }

    /// Does what the server asks until it says yes or no.
    async fn finish(&mut self) -> Result<(), Fault> {
        // Each kind of question comes once.
        for _ in 0..6 {
            let packet = self.wire.read().await.map_err(io)?;
            match packet.as_slice() {
                [0x00, ..] => return Ok(()),
                [0xff, ..] => return Err(refusal(&packet)),
                [0xfe, asked @ ..] if !asked.is_empty() => {
                    self.switch(asked);
                    let proof = self.proof()?;
                    self.wire.write(&proof).await.map_err(io)?;
                }
                // caching_sha2_password: the server knows the password. Its yes follows.
                [0x01, 0x03] => {}
                // caching_sha2_password: it does not.
                [0x01, 0x04] if self.plugin == AuthPlugin::CachingSha2Password => {
                    let password = self.password_itself()?;
                    self.wire.write(&password).await.map_err(io)?;
                }
                _ => return Err(self.unknown_plugin()),
            }
        }
        Err(Fault::nonsense("a login without an end"))
    }
}

#[cfg(test)]
#[path = "login_tests.rs"]
mod tests;
