//! Completion scripts: clap's, which know every option, with functions that read groups and
//! clients from the store.

use clap_complete::Shell;

/// Bash's functions for a line. A word like `--group=x` comes as three.
const BASH: &str = r#"
# The job's line, which begins with the word of this number.
_tokenrun_job() {
    local cur="$1" first="$2"
    COMPREPLY=()
    if declare -F _comp_command_offset >/dev/null; then
        _comp_command_offset "$first"
    elif declare -F _command_offset >/dev/null; then
        _command_offset "$first"
    elif ((COMP_CWORD == first)) && [[ "$cur" != */* ]]; then
        mapfile -t COMPREPLY < <(compgen -c -- "$cur" | sort -u)
    fi
}

# The names of groups and of clients come from the store.
_tokenrun_line() {
    local cur="$2" prev="$3" before=("${COMP_WORDS[@]:0:COMP_CWORD}") at line name names=""
    for at in "${!before[@]}"; do
        case "${before[at]}" in
        --)
            _tokenrun_job "$cur" $((at + 1))
            return
            ;;
        esac
    done
    if [[ "$cur" == "=" ]]; then
        cur=""
    elif [[ "$prev" == "=" ]]; then
        prev="${COMP_WORDS[COMP_CWORD - 2]}"
    fi
    case "$prev" in
    -g | --group) names=groups ;;
    --client) names=clients ;;
    --to) [[ " ${before[*]} " == *" fence "* ]] || names=clients ;;
    esac
    if [[ -z "$names" ]]; then
        _tokenrun "$@"
        return
    fi
    COMPREPLY=()
    compopt +o default +o bashdefault 2>/dev/null
    read -ra line <<<"$COMP_LINE"
    while IFS= read -r name; do
        printf -v name %q "$name"
        [[ "$name" == "$cur"* ]] && COMPREPLY+=("$name")
    done < <("$1" "$names" -- "${line[@]:1}" 2>/dev/null)
    return 0
}
"#;

/// Zsh's functions for a value.
const ZSH: &str = r#"
# The names of groups and of clients come from the store.
(( $+functions[_tokenrun_names] )) ||
_tokenrun_names() {
    local -a names
    names=("${(@f)$(tokenrun $1 -- "${(@Q)words[2,-1]}" 2>/dev/null)}")
    names=("${(@)names:#}")
    _wanted $1 expl $2 compadd -a names
}
(( $+functions[_tokenrun_groups] )) ||
_tokenrun_groups() { _tokenrun_names groups group }
(( $+functions[_tokenrun_clients] )) ||
_tokenrun_clients() { _tokenrun_names clients client }
"#;

/// What zsh's function for a line begins with.
const ZSH_BEGIN: &str = r#"
_tokenrun() {
    local dashes=${words[(i)--]}
    if (( dashes < CURRENT )); then
        # From here on it is the job's line.
        shift $dashes words
        (( CURRENT -= dashes ))
        _normal
        return
    fi
"#;

/// Fish's functions for values and for the job.
const FISH: &str = r#"
# The names of groups and of clients come from the store.
function __fish_tokenrun_groups
    set -l line (commandline -opc)
    tokenrun groups -- $line[2..] 2>/dev/null
end
function __fish_tokenrun_clients
    set -l line (commandline -opc)
    tokenrun clients -- $line[2..] 2>/dev/null
end

# After -- comes the job's line.
function __fish_tokenrun_in_job
    contains -- -- (commandline -opc)
end
function __fish_tokenrun_job
    set -l line (commandline -opc)
    set -l first (math 1 + (contains -i -- -- $line))
    set -l job
    if test (count $line) -ge $first
        set job (string escape -- $line[$first..])
    end
    complete -C (string join ' ' -- $job (commandline -ct))
end
complete -c tokenrun -n __fish_tokenrun_in_job -x -a '(__fish_tokenrun_job)'
"#;

/// What fish's test for the place of a verb begins with.
const FISH_BEGIN: &str = "function __fish_tokenrun_needs_command
\tcontains -- -- (commandline -opc); and return 1
";

/// The completion script for a shell.
pub(crate) fn script(shell: Shell, command: &mut clap::Command) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, command, "tokenrun", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Bash => of_bash(&script),
        Shell::Zsh => of_zsh(&script),
        Shell::Fish => of_fish(&script, command),
        _ => script,
    }
}

fn of_bash(script: &str) -> String {
    let Some(at) = script.rfind("\nif [[ \"${BASH_VERSINFO[0]}\"") else {
        return script.to_owned();
    };
    let (functions, calls) = script.split_at(at);
    let calls = calls.replace("complete -F _tokenrun ", "complete -F _tokenrun_line ");
    format!("{functions}{BASH}{calls}")
}

fn of_zsh(script: &str) -> String {
    let script = script.replace("]:NAME:_default'", "]:NAME:_tokenrun_groups'");
    let with_clients = |line: &str| match takes_client(line) {
        true => line.replace("]:ID:_default'", "]:ID:_tokenrun_clients'"),
        false => line.to_owned(),
    };
    let lines: Vec<String> = script.lines().map(with_clients).collect();
    let script = lines.join("\n") + "\n";
    let script = script.replacen("\n_tokenrun() {\n", ZSH_BEGIN, 1);
    // The job would replace a command's name, and its options would be unknown.
    let lines = script.lines();
    let kept = lines.filter(|line| !line.starts_with("'::command -- "));
    let script: String = kept.map(|line| format!("{line}\n")).collect();
    // The command's name is the first word without it, not the second.
    let script = script.replace("$line[2]", "$line[1]");
    let Some(at) = script.rfind("\nif [ \"$funcstack[1]\"") else {
        return script;
    };
    let (functions, call) = script.split_at(at);
    format!("{functions}{ZSH}{call}")
}

/// Whether a line of zsh's script is about an option that names a client of the store.
fn takes_client(line: &str) -> bool {
    ["--to=[", "--client=[", "--from=["]
        .iter()
        .any(|option| line.contains(option))
}

/// What may follow `help`: clap's script for fish has no values of words.
fn help_for_fish(command: &clap::Command) -> String {
    let help = command.find_subcommand("help");
    let mut words = help.into_iter().flat_map(clap::Command::get_arguments);
    let words = words.find(|word| word.is_positional());
    let words = words
        .map(clap::Arg::get_possible_values)
        .unwrap_or_default();
    let words: Vec<&str> = words
        .iter()
        .map(clap::builder::PossibleValue::get_name)
        .collect();
    format!(
        "complete -c tokenrun -n \"__fish_tokenrun_using_subcommand help\" -f -a \"{}\"\n",
        words.join(" ")
    )
}

fn of_fish(script: &str, command: &clap::Command) -> String {
    let begin = "function __fish_tokenrun_needs_command\n";
    let script = script.replacen(begin, FISH_BEGIN, 1);
    let mut lines = String::new();
    for line in script.lines() {
        lines.push_str(line);
        if line.contains(" -s g -l group ") {
            lines.push_str(" -f -a \"(__fish_tokenrun_groups)\"");
        } else if line.contains(" -l client ")
            || line.contains(" -l to -d 'The client")
            || line.contains(" -l from ")
        {
            lines.push_str(" -f -a \"(__fish_tokenrun_clients)\"");
        }
        lines.push('\n');
    }
    format!("{lines}{FISH}{}", help_for_fish(command))
}
