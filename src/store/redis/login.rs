//! What a new connection begins with: the password, the number of the database, and a name.

use super::settings::Settings;
use crate::store::net::host::Host;

/// What a new connection begins with.
pub(super) struct Login {
    needed: Vec<redis::Cmd>,
    /// The connection's name, which the server may refuse.
    name: redis::Cmd,
}

impl Login {
    /// The commands for this server.
    pub(super) fn of(settings: &Settings, host: &Host) -> Self {
        let mut needed = Vec::new();
        let password = host.password.as_ref().map(|it| it.0.as_str());
        if settings.user.is_some() || password.is_some() {
            let mut command = redis::cmd("AUTH");
            if let Some(user) = &settings.user {
                command.arg(user);
            }
            // A user without a password takes any. Without this the run would have another user's rights.
            command.arg(password.unwrap_or_default());
            needed.push(command);
        }
        if settings.database != 0 {
            let mut command = redis::cmd("SELECT");
            command.arg(settings.database);
            needed.push(command);
        }
        let mut name = redis::cmd("CLIENT");
        name.arg("SETNAME").arg(&settings.application);
        Self { needed, name }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let commands = self.needed.iter().chain([&self.name]);
        commands.flat_map(redis::Cmd::get_packed_command).collect()
    }

    /// How many answers come before that to the name.
    pub(super) const fn needed(&self) -> usize {
        self.needed.len()
    }
}
