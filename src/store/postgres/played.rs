//! A server whose answers are given, in memory: the driver makes its rows and errors of them.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_postgres::{Config, Error, NoTls, Row};

use super::cells::parameter;
use crate::store::sql::cell::Cell;

/// `AuthenticationOk`, and `ReadyForQuery`.
pub(super) const LOGGED_IN: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";

/// A message with its kind and its length.
pub(super) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&[kind], &length.to_be_bytes()[..], body].concat()
}

/// What the driver makes of these answers: the first is to its login, the second to a query with these values. Then the
/// server closes the connection.
pub(super) fn queried(answers: &[&[u8]], values: &[Cell]) -> Result<Vec<Row>, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (near, mut far) = tokio::io::duplex(1 << 16);
        let answers: Vec<Vec<u8>> = answers.iter().map(|answer| answer.to_vec()).collect();
        tokio::spawn(async move {
            for answer in answers {
                let asked = far.read(&mut [0; 4096]).await.unwrap();
                assert!(asked > 0, "the driver has gone");
                far.write_all(&answer).await.unwrap();
            }
        });
        let (client, connection) = Config::new().user("u").connect_raw(near, NoTls).await?;
        tokio::spawn(connection);
        let values: Vec<_> = values.iter().map(parameter).collect();
        client.query_typed("", &values).await
    })
}
