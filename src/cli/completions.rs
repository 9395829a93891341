//! Completion scripts: clap's, which know every option, with functions that read groups from the
//! store.

use clap_complete::Shell;

/// Bash's function for a line. A word like `--group=x` comes as three.
const BASH: &str = r#"
# The names of groups come from the store.
_tokenrun_line() {
    local cur="$2" prev="$3" before=("${COMP_WORDS[@]:0:COMP_CWORD}") line name word
    if [[ "$cur" == "=" ]]; then
        cur=""
    elif [[ "$prev" == "=" ]]; then
        prev="${COMP_WORDS[COMP_CWORD - 2]}"
    fi
    for word in "${before[@]}"; do
        # From here on it is the job's line.
        [[ "$word" == "--" ]] && prev=""
    done
    if [[ "$prev" != "-g" && "$prev" != "--group" ]]; then
        _tokenrun "$@"
        return
    fi
    COMPREPLY=()
    compopt +o default +o bashdefault 2>/dev/null
    read -ra line <<<"$COMP_LINE"
    while IFS= read -r name; do
        printf -v name %q "$name"
        [[ "$name" == "$cur"* ]] && COMPREPLY+=("$name")
    done < <("$1" groups -- "${line[@]:1}" 2>/dev/null)
    return 0
}
"#;

/// Zsh's function for a value.
const ZSH: &str = r#"
# The names of groups come from the store.
(( $+functions[_tokenrun_groups] )) ||
_tokenrun_groups() {
    local -a names
    names=("${(@f)$(tokenrun groups -- "${(@Q)words[2,-1]}" 2>/dev/null)}")
    names=("${(@)names:#}")
    _wanted groups expl group compadd -a names
}
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

/// Fish's function for a value.
const FISH: &str = "
# The names of groups come from the store.
function __fish_tokenrun_groups
    set -l line (commandline -opc)
    tokenrun groups -- $line[2..] 2>/dev/null
end
";

/// The completion script for a shell.
pub(super) fn script(shell: Shell, command: &mut clap::Command) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, command, "tokenrun", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Bash => of_bash(&script),
        Shell::Zsh => of_zsh(&script),
        Shell::Fish => of_fish(&script),
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

fn of_fish(script: &str) -> String {
    let mut lines = String::new();
    for line in script.lines() {
        lines.push_str(line);
        if line.contains(" -s g -l group ") {
            lines.push_str(" -f -a \"(__fish_tokenrun_groups)\"");
        }
        lines.push('\n');
    }
    format!("{lines}{FISH}")
}
