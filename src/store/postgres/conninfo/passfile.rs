//! `~/.pgpass`: lines of `host:port:database:user:password`.

/// The password for a connection, if a line matches it. `*` matches everything; a backslash escapes
/// a `:` or a backslash.
#[must_use]
pub fn find(text: &str, host: &str, port: &str, dbname: &str, user: &str) -> Option<String> {
    let wanted = [host, port, dbname, user];
    text.lines().find_map(|line| {
        if line.starts_with('#') {
            return None;
        }
        let fields = fields(line.trim_end_matches('\r'));
        let (password, names) = fields.split_last().filter(|_| fields.len() == 5)?;
        let fits = |(field, wanted): (&Field, &&str)| field.is_star || field.text == **wanted;
        names
            .iter()
            .zip(&wanted)
            .all(fits)
            .then(|| password.text.clone())
    })
}

#[derive(Default)]
struct Field {
    text: String,
    is_star: bool,
}

/// Five fields at most: the fifth is the rest of the line.
fn fields(line: &str) -> Vec<Field> {
    let mut fields = vec![Field::default()];
    let mut raw = String::new();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        let count = fields.len();
        let Some(last) = fields.last_mut() else {
            break;
        };
        match c {
            ':' if count < 5 => {
                last.is_star = raw == "*";
                raw.clear();
                fields.push(Field::default());
            }
            '\\' => {
                raw.push('\\');
                last.text.extend(chars.next());
            }
            c => {
                raw.push(c);
                last.text.push(c);
            }
        }
    }
    fields
}
