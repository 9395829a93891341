# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_tokenrun_global_optspecs
    string join \n g/group= client-id= expected= failback heartbeat= takeover-after= keep= head-start= at-least= kill-grace= store-timeout= timeout= wait= leftovers= close-lock capture= once= done-exit-code= once-retain= E/conflict-exit-code= on-success= on-failure= on-refused= hook-timeout= s/store= store-file= config= history-retain= label= report= q/quiet v/verbose log-format= h/help V/version
end

function __fish_tokenrun_needs_command
	contains -- -- (commandline -opc); and return 1
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_tokenrun_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_tokenrun_using_subcommand
    set -l cmd (__fish_tokenrun_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c tokenrun -n "__fish_tokenrun_needs_command" -s g -l group -d 'The name of what must run on one node at a time' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l client-id -d 'Who this node is [default: $CLIENT_ID, else the host name]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l expected -d 'The client that gets the token first; recorded when the group is first seen' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l heartbeat -d 'Time between two heartbeats [default: 10s]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l takeover-after -d 'How long a holder may be silent before another takes over [default: 5m]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l keep -d 'How long after a run other nodes are refused, so that a late clock does not run the job again; 0 releases at exit [default: 5m]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l head-start -d 'How long a node other than the last waits before it takes an open token [default: 10s]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l at-least -d 'The least time from this run\'s start to the next one\'s, on whichever node [default: 0]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l kill-grace -d 'Time between the job\'s TERM and its KILL [default: 10s]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l store-timeout -d 'How long one call of the store may take [default: 10s, at most a tenth of takeover-after]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l timeout -d 'The job\'s longest run; then it is ended, exit status 124 [default: none]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l wait -d 'Wait in the queue while another has the token, or it may not be taken yet; at most for so long, then exit status 75 [default: no; without a DURATION however long it takes]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l leftovers -d 'What happens to processes that the job leaves behind' -r -f -a "kill\t'They are ended too'
leave\t'They are left alone'"
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l capture -d 'Catch what the job prints: nothing is printed if it succeeds, all if it does not; the last SIZE bytes are stored, for tokenrun output [default: no; without a SIZE 64KiB]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l once -d 'Run only if no run with this key has succeeded in this group: a date, a batch, a version' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l done-exit-code -d 'Exit status when the key is done [default: 0]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l once-retain -d 'How long keys that are done are kept, at least [default: 400d]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -s E -l conflict-exit-code -d 'Exit status when another holds the token [default: 75]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l on-success -d 'A shell command that is run after a success' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l on-failure -d 'A shell command that is run after any end that is no success' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l on-refused -d 'A shell command that is run when the run is refused' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l hook-timeout -d 'How long a hook may take; then it is killed, with all that it has started [default: 10s]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq\'s, mysql://user@host/database, sqlite:///absolute/path or the plain path of a file' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l store-file -d 'A file that holds what would be written after --store: a mounted secret' -r -F
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l config -d 'A configuration file, instead of the system\'s and the user\'s; \'\' for none' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l history-retain -d 'How long history is kept, at least [default: 30d]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l label -d 'Shown in status and history' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l report -d 'Write what happened to this file as JSON, at the end' -r -F
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l log-format -d 'How messages are written to stderr' -r -f -a "text\t'A line of text each'
json\t'A JSON object a line'"
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l failback -d 'As the expected client, take the token back when it is idle'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l close-lock -d 'Do not let the job inherit the lock that shows others on this host that it lives'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -s q -l quiet -d 'Say only what is wrong; twice: say nothing'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -s v -l verbose -d 'Tell every step'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -s V -l version -d 'Print version'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "status" -d 'Show who holds which token'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "history" -d 'Show who ran when, and how it ended'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "output" -d 'Print what a job run with --capture has printed'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "explain" -d 'Tell what the rule says to this client now, and when that changes'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "check" -d 'Tell whether this node may run now, or whether a run has succeeded'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "hold" -d 'Keep the token without a job, and tell when it comes and goes'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "pause" -d 'Stop new grants; a running job goes on'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "resume" -d 'Allow grants again'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "handoff" -d 'Have the token go to a certain client next, when it is idle'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "move" -d 'Have the token go to a certain client now: hand it off, and end the job of another'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "expect" -d 'Change the client that is expected to have the token'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "revoke" -d 'Ask the holder to end its job and to free the token, without overlap'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "release" -d 'Free an idle token; a running one only by force'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "settle" -d 'Say that a store which may have forgotten a grant has not, so that no run waits for it'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "distrust" -d 'Have nothing granted until every lease is over that the store may have forgotten'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "metrics" -d 'Print metrics for Prometheus'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "page" -d 'Write a page of HTML: every group\'s state, and who ran when'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "once" -d 'Show or forget the keys of --once that are done'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "fence" -d 'Check a fence, guard a resource by it, or raise it'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "init" -d 'Make the store, or print how an administrator makes it'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "config" -d 'Show the settings that a run would use, and where each came from'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "doctor" -d 'Examine the store, step by step, and say what to do about what is wrong'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "completions" -d 'Print the completion script for a shell'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "man" -d 'Write the manual pages'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand status" -s g -l group -d 'Only this group, or those that match: \'etl-*\'; can be repeated' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand status" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq\'s, mysql://user@host/database, sqlite:///absolute/path or the plain path of a file' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand status" -l store-file -d 'A file that holds what would be written after --store: a mounted secret' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand status" -l config -d 'A configuration file, instead of the system\'s and the user\'s; \'\' for none' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand status" -l state -d 'Only groups that are in one of these states' -r -f -a "running\t''
idle\t''
free\t''
silent\t'Its holder has been silent for longer than allowed'
paused\t''
failed\t'Its last run was no success'
observed\t'Nothing is granted, because the store may have forgotten a grant'
unreadable\t''"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand status" -s o -l output -d 'The table with every column, however wide; or JSON' -r -f -a "wide\t''
json\t''"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand status" -l color -d 'When to show colours; auto: on a terminal, unless NO_COLOR is set' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t''
never\t''"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand status" -l watch -d 'Show it anew every so often, until it is interrupted [default: 2s]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand status" -l utc -d 'Times in UTC, by RFC 3339, and not in the zone of this terminal'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand status" -l json -d 'An array of JSON objects instead of a table'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -s g -l group -d 'Only this group, or those that match: \'etl-*\'; can be repeated' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq\'s, mysql://user@host/database, sqlite:///absolute/path or the plain path of a file' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -l store-file -d 'A file that holds what would be written after --store: a mounted secret' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -l config -d 'A configuration file, instead of the system\'s and the user\'s; \'\' for none' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -l color -d 'When to show colours; auto: on a terminal, unless NO_COLOR is set' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t''
never\t''"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -l client -d 'Only runs of this client' -r -f -a "(__fish_tokenrun_clients)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -l outcome -d 'Only runs that ended like one of these: failed,lost' -r -f -a "running\t''
succeeded\t''
failed\t''
signalled\t''
timed_out\t''
lost\t''
not_started\t''
unknown\t''"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -l since -d 'Only what began then or later: 12h (ago), 02:00, yesterday, 2026-11-21, \'2026-11-21 02:00\'' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -l until -d 'Only what began before then: as --since' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -s n -l limit -d 'At most so many runs, refusals and acts of operators, the newest' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -l utc -d 'Times in UTC, by RFC 3339, and not in the zone of this terminal'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -l refusals -d 'Refused runs too: by whom, why, how often'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -l timeline -d 'A picture of who ran when, as wide as the terminal'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -l json -d 'An array of JSON objects instead of a table'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand output" -s g -l group -d 'The group' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand output" -l run -d 'The run with this fence, as history shows it [default: the newest whose output is kept]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand output" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq\'s, mysql://user@host/database, sqlite:///absolute/path or the plain path of a file' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand output" -l store-file -d 'A file that holds what would be written after --store: a mounted secret' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand output" -l config -d 'A configuration file, instead of the system\'s and the user\'s; \'\' for none' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand output" -l json -d 'An array with one JSON object instead of the output itself'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand output" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand explain" -s g -l group -d 'The group' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand explain" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq\'s, mysql://user@host/database, sqlite:///absolute/path or the plain path of a file' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand explain" -l store-file -d 'A file that holds what would be written after --store: a mounted secret' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand explain" -l config -d 'A configuration file, instead of the system\'s and the user\'s; \'\' for none' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand explain" -l client-id -d 'For this client [default: $CLIENT_ID, else the host name]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand explain" -l at -d 'What happened then, a quarter of an hour before and after: 02:00, \'yesterday 02:00\', \'2026-11-21 02:00\', 12h (ago)' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand explain" -l since -d 'What happened since then: as --at, or a day: yesterday, 2026-11-21' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand explain" -l until -d 'What happened before then: with --since' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand explain" -l failback -d 'As if it came with --failback'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand explain" -l utc -d 'Times in UTC, as given and as shown, instead of this host\'s zone (TZ)'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand explain" -l json -d 'An array of one JSON object instead of sentences'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand check" -s g -l group -d 'The group' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand check" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq\'s, mysql://user@host/database, sqlite:///absolute/path or the plain path of a file' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand check" -l store-file -d 'A file that holds what would be written after --store: a mounted secret' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand check" -l config -d 'A configuration file, instead of the system\'s and the user\'s; \'\' for none' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand check" -l for -d 'The lease must be good for this much longer [default: 0]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand check" -l succeeded-within -d 'For monitoring: whether a run has succeeded, on any node, in this time' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand check" -l runtime-file -d 'The runtime file of tokenrun hold [default: where it writes it for this group]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand check" -l json -d 'An array of one JSON object on stdout'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand check" -s q -l quiet -d 'Say only what is wrong, twice: say nothing; the exit status tells'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -s g -l group -d 'The name of what must be on one node at a time' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq\'s, mysql://user@host/database, sqlite:///absolute/path or the plain path of a file' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l store-file -d 'A file that holds what would be written after --store: a mounted secret' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l config -d 'A configuration file, instead of the system\'s and the user\'s; \'\' for none' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l client-id -d 'Who this node is [default: $CLIENT_ID, else the host name]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l expected -d 'The client that gets the token first; recorded when the group is first seen' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l heartbeat -d 'Time between two heartbeats [default: 10s]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l takeover-after -d 'How long a holder may be silent before another takes over [default: 5m]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l keep -d 'How long after a run other nodes are refused, so that a late clock does not run the job again; 0 releases at exit [default: 5m]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l head-start -d 'How long a node other than the last waits before it takes an open token [default: 10s]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l at-least -d 'The least time from this run\'s start to the next one\'s, on whichever node [default: 0]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l kill-grace -d 'Time between the job\'s TERM and its KILL [default: 10s]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l store-timeout -d 'How long one call of the store may take [default: 10s, at most a tenth of takeover-after]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l wait -d 'How long it waits for the token at most, each time; then exit status 75 [default: however long it takes]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l on-change -d 'A shell command that is run at each gain and at each loss of the token' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l runtime-file -d 'The file by which tokenrun check knows that this node has the token' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l history-retain -d 'How long history is kept, at least [default: 30d]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l label -d 'Shown in status and history' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l log-format -d 'How messages are written to stderr' -r -f -a "text\t'A line of text each'
json\t'A JSON object a line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l failback -d 'As the expected client, take the token back when it is idle'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -s q -l quiet -d 'Say only what is wrong; twice: say nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -s v -l verbose -d 'Tell every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand pause" -s g -l group -d 'The group, or a pattern: * stands for any characters, ? for one; may be given several times' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand pause" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq\'s, mysql://user@host/database, sqlite:///absolute/path or the plain path of a file' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand pause" -l store-file -d 'A file that holds what would be written after --store: a mounted secret' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand pause" -l config -d 'A configuration file, instead of the system\'s and the user\'s; \'\' for none' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand pause" -l reason -d 'Why: recorded, and shown in history' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand pause" -l log-format -d 'How messages are written to stderr' -r -f -a "text\t'A line of text each'
json\t'A JSON object a line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand pause" -l for -d 'For how long [default: until it is resumed]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand pause" -l all -d 'Every group of the store'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand pause" -s y -l yes -d 'Ask no question'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand pause" -l json -d 'What was done, as an array of JSON objects, on stdout'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand pause" -s q -l quiet -d 'Say only what is wrong; twice: say nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand pause" -s v -l verbose -d 'Tell every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand pause" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand resume" -s g -l group -d 'The group, or a pattern: * stands for any characters, ? for one; may be given several times' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand resume" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq\'s, mysql://user@host/database, sqlite:///absolute/path or the plain path of a file' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand resume" -l store-file -d 'A file that holds what would be written after --store: a mounted secret' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand resume" -l config -d 'A configuration file, instead of the system\'s and the user\'s; \'\' for none' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand resume" -l reason -d 'Why: recorded, and shown in history' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand resume" -l log-format -d 'How messages are written to stderr' -r -f -a "text\t'A line of text each'
json\t'A JSON object a line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand resume" -l all -d 'Every group of the store'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand resume" -s y -l yes -d 'Ask no question'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand resume" -l json -d 'What was done, as an array of JSON objects, on stdout'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand resume" -s q -l quiet -d 'Say only what is wrong; twice: say nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand resume" -s v -l verbose -d 'Tell every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand resume" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand handoff" -s g -l group -d 'The group, or a pattern: * stands for any characters, ? for one; may be given several times' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand handoff" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq\'s, mysql://user@host/database, sqlite:///absolute/path or the plain path of a file' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand handoff" -l store-file -d 'A file that holds what would be written after --store: a mounted secret' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand handoff" -l config -d 'A configuration file, instead of the system\'s and the user\'s; \'\' for none' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand handoff" -l reason -d 'Why: recorded, and shown in history' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand handoff" -l log-format -d 'How messages are written to stderr' -r -f -a "text\t'A line of text each'
json\t'A JSON object a line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand handoff" -l to -d 'The client that gets the token next' -r -f -a "(__fish_tokenrun_clients)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand handoff" -l all -d 'Every group of the store'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand handoff" -s y -l yes -d 'Ask no question'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand handoff" -l json -d 'What was done, as an array of JSON objects, on stdout'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand handoff" -s q -l quiet -d 'Say only what is wrong; twice: say nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand handoff" -s v -l verbose -d 'Tell every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand handoff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -s g -l group -d 'The group, or a pattern: * stands for any characters, ? for one; may be given several times' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq\'s, mysql://user@host/database, sqlite:///absolute/path or the plain path of a file' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -l store-file -d 'A file that holds what would be written after --store: a mounted secret' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -l config -d 'A configuration file, instead of the system\'s and the user\'s; \'\' for none' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -l reason -d 'Why: recorded, and shown in history' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -l log-format -d 'How messages are written to stderr' -r -f -a "text\t'A line of text each'
json\t'A JSON object a line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -l to -d 'The client that gets the token' -r -f -a "(__fish_tokenrun_clients)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -l wait -d 'Wait until that client may have the token, at most for so long, then exit status 75 [default: on a terminal, however long it takes]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -l all -d 'Every group of the store'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -s y -l yes -d 'Ask no question'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -l json -d 'What was done, as an array of JSON objects, on stdout'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -s q -l quiet -d 'Say only what is wrong; twice: say nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -s v -l verbose -d 'Tell every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -l no-wait -d 'Do not wait, on a terminal either'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand expect" -s g -l group -d 'The group' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand expect" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq\'s, mysql://user@host/database, sqlite:///absolute/path or the plain path of a file' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand expect" -l store-file -d 'A file that holds what would be written after --store: a mounted secret' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand expect" -l config -d 'A configuration file, instead of the system\'s and the user\'s; \'\' for none' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand expect" -l reason -d 'Why: recorded, and shown in history' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand expect" -l log-format -d 'How messages are written to stderr' -r -f -a "text\t'A line of text each'
json\t'A JSON object a line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand expect" -l json -d 'What was done, as an array of JSON objects, on stdout'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand expect" -s q -l quiet -d 'Say only what is wrong; twice: say nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand expect" -s v -l verbose -d 'Tell every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand expect" -l clear -d 'Expect no client'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand expect" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand revoke" -s g -l group -d 'The group, or a pattern: * stands for any characters, ? for one; may be given several times' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand revoke" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq\'s, mysql://user@host/database, sqlite:///absolute/path or the plain path of a file' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand revoke" -l store-file -d 'A file that holds what would be written after --store: a mounted secret' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand revoke" -l config -d 'A configuration file, instead of the system\'s and the user\'s; \'\' for none' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand revoke" -l reason -d 'Why: recorded, and shown in history' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand revoke" -l log-format -d 'How messages are written to stderr' -r -f -a "text\t'A line of text each'
json\t'A JSON object a line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand revoke" -l wait -d 'Wait until the job has ended and the token is free, at most for so long, then exit status 75 [default: no; without a DURATION however long it takes]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand revoke" -l all -d 'Every group of the store'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand revoke" -s y -l yes -d 'Ask no question'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand revoke" -l json -d 'What was done, as an array of JSON objects, on stdout'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand revoke" -s q -l quiet -d 'Say only what is wrong; twice: say nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand revoke" -s v -l verbose -d 'Tell every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand revoke" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand release" -s g -l group -d 'The group, or a pattern: * stands for any characters, ? for one; may be given several times' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand release" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq\'s, mysql://user@host/database, sqlite:///absolute/path or the plain path of a file' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand release" -l store-file -d 'A file that holds what would be written after --store: a mounted secret' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand release" -l config -d 'A configuration file, instead of the system\'s and the user\'s; \'\' for none' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand release" -l reason -d 'Why: recorded, and shown in history' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand release" -l log-format -d 'How messages are written to stderr' -r -f -a "text\t'A line of text each'
json\t'A JSON object a line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand release" -l all -d 'Every group of the store'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand release" -s y -l yes -d 'Ask no question'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand release" -l json -d 'What was done, as an array of JSON objects, on stdout'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand release" -s q -l quiet -d 'Say only what is wrong; twice: say nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand release" -s v -l verbose -d 'Tell every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand release" -l force -d 'Free it although a job holds it: that job may go on for a while, beside the next'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand release" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand settle" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq\'s, mysql://user@host/database, sqlite:///absolute/path or the plain path of a file' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand settle" -l store-file -d 'A file that holds what would be written after --store: a mounted secret' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand settle" -l config -d 'A configuration file, instead of the system\'s and the user\'s; \'\' for none' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand settle" -l reason -d 'Why: recorded, and shown in history' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand settle" -l log-format -d 'How messages are written to stderr' -r -f -a "text\t'A line of text each'
json\t'A JSON object a line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand settle" -l json -d 'What was done, as an array of JSON objects, on stdout'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand settle" -s q -l quiet -d 'Say only what is wrong; twice: say nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand settle" -s v -l verbose -d 'Tell every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand settle" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand distrust" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq\'s, mysql://user@host/database, sqlite:///absolute/path or the plain path of a file' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand distrust" -l store-file -d 'A file that holds what would be written after --store: a mounted secret' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand distrust" -l config -d 'A configuration file, instead of the system\'s and the user\'s; \'\' for none' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand distrust" -l reason -d 'Why: recorded, and shown in history' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand distrust" -l log-format -d 'How messages are written to stderr' -r -f -a "text\t'A line of text each'
json\t'A JSON object a line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand distrust" -l json -d 'What was done, as an array of JSON objects, on stdout'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand distrust" -s q -l quiet -d 'Say only what is wrong; twice: say nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand distrust" -s v -l verbose -d 'Tell every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand distrust" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand metrics" -s g -l group -d 'Only this group' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand metrics" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq\'s, mysql://user@host/database, sqlite:///absolute/path or the plain path of a file' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand metrics" -l store-file -d 'A file that holds what would be written after --store: a mounted secret' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand metrics" -l config -d 'A configuration file, instead of the system\'s and the user\'s; \'\' for none' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand metrics" -l textfile -d 'Write them to this file instead of stdout, as a whole: for the textfile collector' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand metrics" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand page" -s o -l output -d 'The file that is written, as a whole; - for stdout' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand page" -s g -l group -d 'Only these groups: a name, or a pattern with * and ?; may be repeated' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand page" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq\'s, mysql://user@host/database, sqlite:///absolute/path or the plain path of a file' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand page" -l store-file -d 'A file that holds what would be written after --store: a mounted secret' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand page" -l config -d 'A configuration file, instead of the system\'s and the user\'s; \'\' for none' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand page" -l title -d 'The page\'s heading' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand page" -l refresh -d 'A browser loads the page anew after this time: 60s, 5m [default: never]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand page" -l utc -d 'Times in UTC, not in the local time zone'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand page" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and not __fish_seen_subcommand_from list forget" -s h -l help -d 'Print help'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and not __fish_seen_subcommand_from list forget" -f -a "list" -d 'Show the keys that are done'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and not __fish_seen_subcommand_from list forget" -f -a "forget" -d 'Forget a key: a run with it runs again'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from list" -s g -l group -d 'Only this group' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from list" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq\'s, mysql://user@host/database, sqlite:///absolute/path or the plain path of a file' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from list" -l store-file -d 'A file that holds what would be written after --store: a mounted secret' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from list" -l config -d 'A configuration file, instead of the system\'s and the user\'s; \'\' for none' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from list" -l color -d 'When to show colours; auto: on a terminal, unless NO_COLOR is set' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t''
never\t''"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from list" -l utc -d 'Times in UTC, by RFC 3339, and not in the zone of this terminal'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from list" -l json -d 'An array of JSON objects instead of a table'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from forget" -s g -l group -d 'The group' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from forget" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq\'s, mysql://user@host/database, sqlite:///absolute/path or the plain path of a file' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from forget" -l store-file -d 'A file that holds what would be written after --store: a mounted secret' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from forget" -l config -d 'A configuration file, instead of the system\'s and the user\'s; \'\' for none' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from forget" -l reason -d 'Why: recorded, and shown in history' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from forget" -l log-format -d 'How messages are written to stderr' -r -f -a "text\t'A line of text each'
json\t'A JSON object a line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from forget" -l json -d 'What was done, as an array of JSON objects, on stdout'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from forget" -s q -l quiet -d 'Say only what is wrong; twice: say nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from forget" -s v -l verbose -d 'Tell every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from forget" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and not __fish_seen_subcommand_from verify advance raise" -s h -l help -d 'Print help'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and not __fish_seen_subcommand_from verify advance raise" -f -a "verify" -d 'Tell whether a fence is its group\'s current one: 0, or 76 if it is stale'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and not __fish_seen_subcommand_from verify advance raise" -f -a "advance" -d 'Note the highest fence that has used a resource: 0, or 76 if a higher one has'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and not __fish_seen_subcommand_from verify advance raise" -f -a "raise" -d 'Raise a group\'s fence, while no run holds it'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from verify" -s g -l group -d 'The group' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from verify" -s f -l fence -d 'The fence' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from verify" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq\'s, mysql://user@host/database, sqlite:///absolute/path or the plain path of a file' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from verify" -l store-file -d 'A file that holds what would be written after --store: a mounted secret' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from verify" -l config -d 'A configuration file, instead of the system\'s and the user\'s; \'\' for none' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from verify" -l log-format -d 'How messages are written to stderr' -r -f -a "text\t'A line of text each'
json\t'A JSON object a line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from verify" -l json -d 'The answer, as an array of one JSON object, on stdout'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from verify" -s q -l quiet -d 'Say only what is wrong; twice: say nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from verify" -s v -l verbose -d 'Tell every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from verify" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from advance" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq\'s, mysql://user@host/database, sqlite:///absolute/path or the plain path of a file' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from advance" -l store-file -d 'A file that holds what would be written after --store: a mounted secret' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from advance" -l config -d 'A configuration file, instead of the system\'s and the user\'s; \'\' for none' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from advance" -l log-format -d 'How messages are written to stderr' -r -f -a "text\t'A line of text each'
json\t'A JSON object a line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from advance" -l json -d 'The answer, as an array of one JSON object, on stdout'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from advance" -s q -l quiet -d 'Say only what is wrong; twice: say nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from advance" -s v -l verbose -d 'Tell every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from advance" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from raise" -s g -l group -d 'The group' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from raise" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq\'s, mysql://user@host/database, sqlite:///absolute/path or the plain path of a file' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from raise" -l store-file -d 'A file that holds what would be written after --store: a mounted secret' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from raise" -l config -d 'A configuration file, instead of the system\'s and the user\'s; \'\' for none' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from raise" -l reason -d 'Why: recorded, and shown in history' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from raise" -l log-format -d 'How messages are written to stderr' -r -f -a "text\t'A line of text each'
json\t'A JSON object a line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from raise" -l to -d 'The least that it is then: the highest that a resource has seen [default: by a minute]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from raise" -l json -d 'What was done, as an array of JSON objects, on stdout'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from raise" -s q -l quiet -d 'Say only what is wrong; twice: say nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from raise" -s v -l verbose -d 'Tell every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from raise" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand init" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq\'s, mysql://user@host/database, sqlite:///absolute/path or the plain path of a file' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand init" -l store-file -d 'A file that holds what would be written after --store: a mounted secret' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand init" -l config -d 'A configuration file, instead of the system\'s and the user\'s; \'\' for none' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand init" -l print-sql -d 'Print the SQL that makes it, with a role that may do what tokenrun does and no more'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand init" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -s g -l group -d 'The name of what must run on one node at a time' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l client-id -d 'Who this node is [default: $CLIENT_ID, else the host name]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l expected -d 'The client that gets the token first; recorded when the group is first seen' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l heartbeat -d 'Time between two heartbeats [default: 10s]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l takeover-after -d 'How long a holder may be silent before another takes over [default: 5m]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l keep -d 'How long after a run other nodes are refused, so that a late clock does not run the job again; 0 releases at exit [default: 5m]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l head-start -d 'How long a node other than the last waits before it takes an open token [default: 10s]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l at-least -d 'The least time from this run\'s start to the next one\'s, on whichever node [default: 0]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l kill-grace -d 'Time between the job\'s TERM and its KILL [default: 10s]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l store-timeout -d 'How long one call of the store may take [default: 10s, at most a tenth of takeover-after]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l timeout -d 'The job\'s longest run; then it is ended, exit status 124 [default: none]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l wait -d 'Wait in the queue while another has the token, or it may not be taken yet; at most for so long, then exit status 75 [default: no; without a DURATION however long it takes]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l leftovers -d 'What happens to processes that the job leaves behind' -r -f -a "kill\t'They are ended too'
leave\t'They are left alone'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l capture -d 'Catch what the job prints: nothing is printed if it succeeds, all if it does not; the last SIZE bytes are stored, for tokenrun output [default: no; without a SIZE 64KiB]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l once -d 'Run only if no run with this key has succeeded in this group: a date, a batch, a version' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l done-exit-code -d 'Exit status when the key is done [default: 0]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l once-retain -d 'How long keys that are done are kept, at least [default: 400d]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -s E -l conflict-exit-code -d 'Exit status when another holds the token [default: 75]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l on-success -d 'A shell command that is run after a success' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l on-failure -d 'A shell command that is run after any end that is no success' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l on-refused -d 'A shell command that is run when the run is refused' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l hook-timeout -d 'How long a hook may take; then it is killed, with all that it has started [default: 10s]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq\'s, mysql://user@host/database, sqlite:///absolute/path or the plain path of a file' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l store-file -d 'A file that holds what would be written after --store: a mounted secret' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l config -d 'A configuration file, instead of the system\'s and the user\'s; \'\' for none' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l history-retain -d 'How long history is kept, at least [default: 30d]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l label -d 'Shown in status and history' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l report -d 'Write what happened to this file as JSON, at the end' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l log-format -d 'How messages are written to stderr' -r -f -a "text\t'A line of text each'
json\t'A JSON object a line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l failback -d 'As the expected client, take the token back when it is idle'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l close-lock -d 'Do not let the job inherit the lock that shows others on this host that it lives'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -s q -l quiet -d 'Say only what is wrong; twice: say nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -s v -l verbose -d 'Tell every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l json -d 'An array of JSON objects instead of a table'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand doctor" -s g -l group -d 'Compare the durations with those of this group, too' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand doctor" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq\'s, mysql://user@host/database, sqlite:///absolute/path or the plain path of a file' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand doctor" -l store-file -d 'A file that holds what would be written after --store: a mounted secret' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand doctor" -l config -d 'A configuration file, instead of the system\'s and the user\'s; \'\' for none' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand doctor" -l heartbeat -d 'Time between two heartbeats [default: 10s]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand doctor" -l takeover-after -d 'How long a holder may be silent before another takes over [default: 5m]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand doctor" -l keep -d 'How long after a run other nodes are refused, so that a late clock does not run the job again; 0 releases at exit [default: 5m]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand doctor" -l head-start -d 'How long a node other than the last waits before it takes an open token [default: 10s]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand doctor" -l at-least -d 'The least time from this run\'s start to the next one\'s, on whichever node [default: 0]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand doctor" -l kill-grace -d 'Time between the job\'s TERM and its KILL [default: 10s]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand doctor" -l store-timeout -d 'How long one call of the store may take [default: 10s, at most a tenth of takeover-after]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand doctor" -l json -d 'An array of JSON objects instead of lines'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand completions" -s h -l help -d 'Print help'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand man" -s h -l help -d 'Print help'

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
