//! The statements: what stands in the .sql files, with the names filled in.

macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!("../sql/postgres/", $name, ".sql"))
    };
}

/// How many counts of ends there are.
pub(super) const COUNTS: usize = 6;

/// What a swap does besides the token's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beside {
    Nothing,
    Begin,
    BeginAfterVanished,
    End,
    /// With a success that makes a key done.
    EndOnce,
    Act,
    /// An act that forgets a key.
    Forget,
}

impl Beside {
    /// Whether it writes to a table that came after the first ones.
    pub(super) const fn needs_added_tables(self) -> bool {
        matches!(self, Self::EndOnce | Self::Act | Self::Forget)
    }

    /// Whether it may end a run, which is counted.
    pub(super) const fn counts(self) -> bool {
        !matches!(self, Self::Nothing | Self::Begin)
    }

    /// Whether it ends a run, of which those in line are told.
    pub(super) const fn ends(self) -> bool {
        matches!(self, Self::End | Self::EndOnce)
    }

    /// As [`Self::Begin`], of a session that leaves the line with it.
    const fn begins(self) -> bool {
        matches!(self, Self::Begin | Self::BeginAfterVanished)
    }
}

/// The part that writes the counts, whose parameters follow on so many others.
fn counted_after(parameters: usize) -> String {
    let numbers = (parameters + 1..=parameters + COUNTS).map(|n| format!("${n}"));
    let numbers: Vec<String> = numbers.collect();
    sql!("outcomes_set").replace("{counts}", &numbers.join(", "))
}

/// Fills the names into statements.
#[derive(Debug, Clone)]
pub(super) struct Statements {
    schema: String,
    schema_text: String,
    clock: String,
}

impl Statements {
    /// Statements on the tables of this schema.
    pub(super) fn new(schema: &str) -> Self {
        Self {
            schema: format!("\"{}\"", schema.replace('"', "\"\"")),
            schema_text: format!("'{}'", schema.replace('\'', "''")),
            clock: sql!("clock").to_owned(),
        }
    }

    /// The same, with another clock than the server's.
    #[cfg(test)]
    pub(super) fn with_clock(mut self, clock: &str) -> Self {
        self.clock = format!(
            "SELECT now, NULL::timestamptz AS started, now_domain AS timeline FROM ({clock}) AS turned"
        );
        self
    }

    fn fill(&self, statement: &str) -> String {
        statement
            .replace("{clock}", &self.clock)
            .replace("{domain}", sql!("domain"))
            .replace("{durable}", sql!("durable"))
            .replace("{schema_text}", &self.schema_text)
            .replace("{schema}", &self.schema)
    }

    pub(super) fn token_read(&self) -> String {
        self.fill(sql!("token_read"))
    }

    pub(super) fn token_list(&self) -> String {
        self.fill(&sql!("token_list").replace("{outcomes}", "{schema}.outcomes"))
    }

    /// The same on tables of a version that counts no outcomes.
    pub(super) fn token_list_of_older(&self) -> String {
        self.fill(&sql!("token_list").replace("{outcomes}", sql!("outcomes_none")))
    }

    pub(super) fn history(&self, of_group: bool) -> String {
        self.fill(if of_group {
            sql!("history_of_group")
        } else {
            sql!("history")
        })
    }

    pub(super) fn run_record(&self, marks_once: bool) -> String {
        self.fill(if marks_once {
            sql!("run_record_once")
        } else {
            sql!("run_record")
        })
    }

    pub(super) fn once_read(&self) -> String {
        self.fill(sql!("once_read"))
    }

    pub(super) fn once_list(&self) -> String {
        self.fill(sql!("once_list"))
    }

    pub(super) fn resource_advance(&self) -> String {
        self.fill(sql!("resource_advance"))
    }

    pub(super) fn resource_read(&self) -> String {
        self.fill(sql!("resource_read"))
    }

    pub(super) fn prune(&self) -> String {
        self.fill(sql!("prune"))
    }

    pub(super) fn token_locker(&self) -> String {
        self.fill(sql!("token_locker"))
    }

    pub(super) fn token_lockers(&self) -> String {
        self.fill(sql!("token_lockers"))
    }

    /// Why a swap was not carried out.
    pub(super) fn token_state(&self) -> String {
        self.fill(sql!("token_state"))
    }

    /// A swap of a row that is there: what it sets, and how many parameters come before the
    /// counts. A new fence is a new key: nobody may have locked the old one.
    pub(super) fn update(
        &self,
        changes: &str,
        new_fence: bool,
        (beside, waited): (Beside, bool),
        parameters: usize,
    ) -> String {
        let lock = if new_fence {
            "FOR UPDATE"
        } else {
            "FOR NO KEY UPDATE"
        };
        let update = sql!("token_update").replace("{lock}", lock);
        let update = update.replace("{changes}", changes);
        let answer = if beside.ends() {
            sql!("token_ended")
        } else {
            sql!("token_swapped")
        };
        self.swap(&update, (beside, waited), answer, parameters)
    }

    /// A swap of a row that is not there: its columns, and what goes into them.
    pub(super) fn insert(
        &self,
        (columns, values): &(String, String),
        (beside, waited): (Beside, bool),
        parameters: usize,
    ) -> String {
        let insert = sql!("token_insert").replace("{columns}", columns);
        let insert = insert.replace("{values}", values);
        self.swap(&insert, (beside, waited), sql!("token_swapped"), parameters)
    }

    fn swap(
        &self,
        token: &str,
        (beside, waited): (Beside, bool),
        answer: &str,
        parameters: usize,
    ) -> String {
        let runs: &[&str] = match beside {
            Beside::Nothing => &[],
            Beside::Begin => &[sql!("run_begin")],
            Beside::BeginAfterVanished => &[sql!("run_begin"), sql!("run_vanished")],
            Beside::End => &[sql!("run_end")],
            Beside::EndOnce => &[sql!("run_end_once")],
            Beside::Act => &[sql!("event_add")],
            Beside::Forget => &[sql!("event_add"), sql!("once_forget")],
        };
        let left = (waited && beside.begins()).then_some(sql!("line_left"));
        let counted = beside.counts().then(|| counted_after(parameters));
        let parts = [token].into_iter().chain(runs.iter().copied());
        let parts = parts.chain(left).chain(counted.as_deref());
        let parts: Vec<&str> = parts.collect();
        self.fill(&format!("WITH {}{answer}", parts.join(",\n")))
    }

    pub(super) fn schema_version(&self) -> String {
        self.fill(sql!("schema_version"))
    }

    pub(super) fn schema_create(&self) -> String {
        self.fill(sql!("schema_create"))
    }

    pub(super) fn grants(&self) -> String {
        self.fill(sql!("grants"))
    }

    pub(super) fn events(&self) -> String {
        self.fill(sql!("events"))
    }

    pub(super) fn schema_added(&self) -> String {
        self.fill(sql!("schema_added"))
    }

    pub(super) fn schema(&self) -> String {
        format!("{}\n{}", self.fill(sql!("schema")), self.schema_later())
    }

    /// What versions 2 and 3 have beside version 1.
    pub(super) fn schema_later(&self) -> String {
        let later = [sql!("schema_2"), sql!("schema_3")];
        self.fill(&later.concat())
    }

    pub(super) fn doctor_server(&self) -> String {
        self.fill(sql!("doctor_server"))
    }

    pub(super) fn doctor_pooler(&self) -> String {
        self.fill(sql!("doctor_pooler"))
    }

    pub(super) fn doctor_clock(&self) -> String {
        self.fill(sql!("doctor_clock"))
    }

    pub(super) fn doctor_stamps(&self) -> String {
        self.fill(sql!("doctor_stamps"))
    }

    pub(super) fn doctor_rights(&self) -> String {
        self.fill(sql!("doctor_rights"))
    }

    pub(super) fn doctor_replication(&self) -> String {
        self.fill(sql!("doctor_replication"))
    }

    pub(super) fn doctor_limits(&self) -> String {
        self.fill(sql!("doctor_limits"))
    }

    pub(super) fn line_join(&self) -> String {
        self.fill(sql!("line_join"))
    }

    pub(super) fn line_leave(&self) -> String {
        self.fill(sql!("line_leave"))
    }

    pub(super) fn line_list(&self) -> String {
        self.fill(sql!("line_list"))
    }

    /// On which channel those in line for a group listen: 64 bits of FNV-1a, because a
    /// channel's name is shorter than a group's may be. Two groups with one channel only
    /// look more often than they need.
    pub(super) fn channel(&self, group: &str) -> String {
        let bytes = self.schema_text.bytes().chain(group.bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("tokenrun_{hash:016x}")
    }
}
