# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_tokenrun_global_optspecs
    string join \n g/group= wait= once= E/conflict-exit-code= timeout= heartbeat= takeover-after= keep= head-start= at-least= kill-grace= store-timeout= move-on-failure leftovers= close-lock capture= done-exit-code= on-success= on-failure= on-refused= hook-timeout= report= history-retain= output-retain= output-count= label= once-retain= q/quiet v/verbose log-format= client-id= expected= failback s/store= store-file= config= h/help V/version
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

complete -c tokenrun -n "__fish_tokenrun_needs_command" -s g -l group -d 'The group: what must run on one node at a time' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l wait -d 'Wait in the queue until the token can be taken, at most this long; then exit code 75 [default: no; without a DURATION there is no limit]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l once -d 'Run only if no run of this group with this key has succeeded: a date, a batch, a version [default: none: the job runs each time]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -s E -l conflict-exit-code -d 'Exit code if the token can\'t be taken now [default: 75]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l timeout -d 'End the job after this time, with exit code 124 [default: none]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l heartbeat -d 'Time between two heartbeats [default: 10s]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l takeover-after -d 'How long a holder may be silent before another node takes over [default: 5m]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l keep -d 'How long after a run other nodes are refused; 0 releases the token when the job ends [default: 5m]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l head-start -d 'How long a node other than the last one waits before it takes an open token [default: 10s]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l at-least -d 'The least time from the start of this run to the start of the next, on any node [default: 0]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l kill-grace -d 'Time between TERM and KILL when the job is ended [default: 10s]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l store-timeout -d 'How long one call of the store may take [default: 10s, at most a tenth of takeover-after]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l leftovers -d 'What happens to processes that the job leaves behind' -r -f -a "kill\t'They are ended too'
leave\t'They are left alone'"
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l capture -d 'Catch the output of the job, print it only if the job does not succeed, and store its last SIZE bytes for tokenrun output [default: no; without a SIZE 64KiB]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l done-exit-code -d 'Exit code if the key of --once is done already [default: 0]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l on-success -d 'A shell command to run after a success [default: none]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l on-failure -d 'A shell command to run after any end that is not a success [default: none]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l on-refused -d 'A shell command to run when the run is refused [default: none]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l hook-timeout -d 'How long a hook may take; then it is killed with every process that it has started [default: 10s]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l report -d 'Write what happened to this file as JSON when the run has ended [default: none]' -r -F
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l history-retain -d 'How long the history is kept, at least [default: 30d]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l output-retain -d 'How long captured outputs are kept, at least, but not longer than the history [default: 7d]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l output-count -d 'How many captured outputs of a group are kept, at most [default: 100]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l label -d 'A text that status and history show beside the run [default: none]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l once-retain -d 'How long keys that are done are kept, at least [default: 400d]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l log-format -d 'The format of messages on stderr' -r -f -a "text\t'Lines of text'
json\t'One JSON object per line'"
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l client-id -d 'The name of this node [default: $CLIENT_ID, else the host name]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l expected -d 'The client that gets the token first; recorded when the group is first used [default: none: the first client that comes gets the token]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path, or the path of a file [default: a SQLite file of this user]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l store-file -d 'A file that holds the value of --store, for example a mounted secret [default: none]' -r -F
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l config -d 'A configuration file to read instead of those of the system and of the user; \'\' reads none [default: both]' -r
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l move-on-failure -d 'After a failed run, let another client run the job next'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l close-lock -d 'Do not let the job inherit the lock that shows other runs on this host that it is alive'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -s q -l quiet -d 'Print only what is wrong; twice: print nothing'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -s v -l verbose -d 'Print every step'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -l failback -d 'If this node is the expected client, take the token back when it is idle'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -s V -l version -d 'Print version'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "status" -d 'Show the state of every token'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "history" -d 'Show past runs, and how each ended'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "output" -d 'Print the stored output of a job that ran with --capture'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "explain" -d 'Explain whether a client may run now, and when that changes'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "check" -d 'Check whether this node may run now, or whether a run has succeeded'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "hold" -d 'Hold the token without a job, and report each gain and loss'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "pause" -d 'Stop new grants, of groups or to a client; a running job goes on'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "resume" -d 'Allow grants again'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "move" -d 'Give tokens to a certain client now, or to any other than their own: end a job that runs elsewhere'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "expect" -d 'Change the client that is expected to have the token'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "revoke" -d 'Ask the holder to end its job and to free the token, without overlap'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "release" -d 'Free an idle token, although its --at-least is not over; a running one only by force'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "once" -d 'List or forget the keys of --once that are done'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "fence" -d 'Check a fencing token, guard a resource with it, or raise it'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "init" -d 'Make the store, or print the SQL with which an administrator makes it'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "doctor" -d 'Check the store step by step, and say what to do about each problem'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "settle" -d 'Confirm that the store has forgotten no grant, so that no run waits for it'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "distrust" -d 'Grant nothing until every lease is over that the store may have forgotten'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "metrics" -d 'Print metrics for Prometheus'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "page" -d 'Write an HTML page: the state of every group, and its runs'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "serve" -d 'Serve the page, the metrics and the state as JSON over HTTP, read only'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "config" -d 'Show the settings that a run would use, and where each comes from'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "completions" -d 'Print the completion script for a shell'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "man" -d 'Write the manual pages'
complete -c tokenrun -n "__fish_tokenrun_needs_command" -a "help" -d 'Explain a command or a topic: exit-codes, environment, json, configuration, options, metrics'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand status" -s g -l group -d 'Only this group, or the groups that match a pattern such as \'etl-*\'; can be repeated' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand status" -l client -d 'Only groups that this client has, is expected to have, gets next or waits for' -r -f -a "(__fish_tokenrun_clients)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand status" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path, or the path of a file [default: a SQLite file of this user]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand status" -l store-file -d 'A file that holds the value of --store, for example a mounted secret [default: none]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand status" -l config -d 'A configuration file to read instead of those of the system and of the user; \'\' reads none [default: both]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand status" -l state -d 'Only groups in one of these states' -r -f -a "running\t''
idle\t''
free\t''
silent\t'The holder has been silent for longer than --takeover-after'
paused\t''
failed\t'The last run was not a success'
observed\t'Nothing is granted, because the store may have forgotten a grant'
unreadable\t''"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand status" -l color -d 'When to show colours; auto: on a terminal, unless NO_COLOR is set' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t''
never\t''"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand status" -l watch -d 'Show it again after each DURATION, until it is interrupted [default: no; without a DURATION 2s]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand status" -s o -d 'The same by a word, as other tools have it' -r -f -a "wide\t'As --wide'
json\t'As --json'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand status" -l utc -d 'Times in UTC (RFC 3339) instead of the zone of this terminal'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand status" -l wide -d 'A table with every column, however wide'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand status" -l json -d 'An array of JSON objects instead of a table'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand status" -l exit-code -d 'Exit with 1 if a group is in trouble: its last run was no success, or its holder is silent'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -s g -l group -d 'Only this group, or the groups that match a pattern such as \'etl-*\'; can be repeated' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path, or the path of a file [default: a SQLite file of this user]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -l store-file -d 'A file that holds the value of --store, for example a mounted secret [default: none]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -l config -d 'A configuration file to read instead of those of the system and of the user; \'\' reads none [default: both]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -l color -d 'When to show colours; auto: on a terminal, unless NO_COLOR is set' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t''
never\t''"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -l client -d 'Only runs of this client' -r -f -a "(__fish_tokenrun_clients)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -l outcome -d 'Only runs with one of these outcomes, such as failed,lost' -r -f -a "running\t''
succeeded\t''
failed\t''
killed\t''
timed_out\t''
lost\t''
not_started\t''
unknown\t''"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -l since -d 'Only what began at this time or later: 12h (ago), 02:00, yesterday, 2026-11-21, \'2026-11-21 02:00\'' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -l until -d 'Only what began before this time, given as for --since' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -s n -l limit -d 'The newest N runs, refusals and acts of operators' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -s o -d 'The same by a word, as other tools have it' -r -f -a "wide\t'As --wide'
json\t'As --json'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -l utc -d 'Times in UTC (RFC 3339) instead of the zone of this terminal'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -l refusals -d 'Show refused runs too: the client, the reason, and how often'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -l wide -d 'A table with every column, however wide'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -l json -d 'An array of JSON objects instead of a table'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand history" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand output" -s g -l group -d 'The group' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand output" -l run -d 'The run with this fencing token, as history shows it [default: the newest run with stored output]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand output" -l at -d 'The run that went on at this time, or the last one before it: 02:00, \'yesterday 02:00\', 12h (ago)' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand output" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path, or the path of a file [default: a SQLite file of this user]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand output" -l store-file -d 'A file that holds the value of --store, for example a mounted secret [default: none]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand output" -l config -d 'A configuration file to read instead of those of the system and of the user; \'\' reads none [default: both]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand output" -l failed -d 'The newest run whose job failed, was killed or timed out; with --at the newest until then'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand output" -l json -d 'An array with one JSON object instead of the plain output'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand output" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand explain" -s g -l group -d 'The group' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand explain" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path, or the path of a file [default: a SQLite file of this user]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand explain" -l store-file -d 'A file that holds the value of --store, for example a mounted secret [default: none]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand explain" -l config -d 'A configuration file to read instead of those of the system and of the user; \'\' reads none [default: both]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand explain" -l client-id -d 'Explain it for this client [default: $CLIENT_ID, else the host name]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand explain" -l at -d 'Explain what happened around this time, a quarter of an hour before and after: 02:00, \'yesterday 02:00\', \'2026-11-21 02:00\', 12h (ago)' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand explain" -l since -d 'Explain what happened since this time, given as for --at, or a day: yesterday, 2026-11-21' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand explain" -l until -d 'Explain what happened before this time, with --since' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand explain" -l failback -d 'As if the client came with --failback'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand explain" -l utc -d 'Times in UTC, given and shown, instead of the zone of this host (TZ)'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand explain" -l json -d 'An array of one JSON object instead of sentences'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand check" -s g -l group -d 'The group, or a pattern such as \'etl-*\'; can be repeated' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand check" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path, or the path of a file [default: a SQLite file of this user]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand check" -l store-file -d 'A file that holds the value of --store, for example a mounted secret [default: none]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand check" -l config -d 'A configuration file to read instead of those of the system and of the user; \'\' reads none [default: both]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand check" -l for -d 'The lease must be good for this much longer [default: 0]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand check" -l succeeded-within -d 'For monitoring: whether a run on any node has succeeded in this time' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand check" -l runtime-file -d 'The runtime file of tokenrun hold [default: the file that hold writes for this group]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand check" -l all -d 'Every group of the store'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand check" -l json -d 'An array of JSON objects on stdout, one for each group'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand check" -s q -l quiet -d 'Print only what is wrong; twice: print nothing, only the exit code tells'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -s g -l group -d 'The group: what must be on one node at a time' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l wait -d 'Wait for the token at most this long, each time; then exit code 75 [default: no limit]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l on-change -d 'A shell command to run at each gain and each loss of the token [default: none]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l runtime-file -d 'The file that shows tokenrun check that this node has the token [default: by the name of the group]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l heartbeat -d 'Time between two heartbeats [default: 10s]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l takeover-after -d 'How long a holder may be silent before another node takes over [default: 5m]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l keep -d 'How long after a run other nodes are refused; 0 releases the token when the job ends [default: 5m]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l head-start -d 'How long a node other than the last one waits before it takes an open token [default: 10s]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l at-least -d 'The least time from the start of this run to the start of the next, on any node [default: 0]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l kill-grace -d 'Time between TERM and KILL when the job is ended [default: 10s]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l store-timeout -d 'How long one call of the store may take [default: 10s, at most a tenth of takeover-after]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l history-retain -d 'How long the history is kept, at least [default: 30d]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l output-retain -d 'How long captured outputs are kept, at least, but not longer than the history [default: 7d]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l output-count -d 'How many captured outputs of a group are kept, at most [default: 100]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l label -d 'A text that status and history show beside the run [default: none]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l log-format -d 'The format of messages on stderr' -r -f -a "text\t'Lines of text'
json\t'One JSON object per line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l client-id -d 'The name of this node [default: $CLIENT_ID, else the host name]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l expected -d 'The client that gets the token first; recorded when the group is first used [default: none: the first client that comes gets the token]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path, or the path of a file [default: a SQLite file of this user]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l store-file -d 'A file that holds the value of --store, for example a mounted secret [default: none]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l config -d 'A configuration file to read instead of those of the system and of the user; \'\' reads none [default: both]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -s q -l quiet -d 'Print only what is wrong; twice: print nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -s v -l verbose -d 'Print every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -l failback -d 'If this node is the expected client, take the token back when it is idle'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand hold" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand pause" -s g -l group -d 'The group, or a pattern such as \'etl-*\'; can be repeated' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand pause" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path, or the path of a file [default: a SQLite file of this user]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand pause" -l store-file -d 'A file that holds the value of --store, for example a mounted secret [default: none]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand pause" -l config -d 'A configuration file to read instead of those of the system and of the user; \'\' reads none [default: both]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand pause" -l reason -d 'The reason, which is recorded and shown in history' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand pause" -l log-format -d 'The format of messages on stderr' -r -f -a "text\t'Lines of text'
json\t'One JSON object per line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand pause" -l client -d 'The client that gets no token of any group' -r -f -a "(__fish_tokenrun_clients)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand pause" -l for -d 'How long the pause lasts [default: until tokenrun resume]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand pause" -l all -d 'Every group of the store'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand pause" -s y -l yes -d 'Ask no question'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand pause" -l json -d 'Print what was done as an array of JSON objects'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand pause" -s q -l quiet -d 'Print only what is wrong; twice: print nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand pause" -s v -l verbose -d 'Print every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand pause" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand resume" -s g -l group -d 'The group, or a pattern such as \'etl-*\'; can be repeated' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand resume" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path, or the path of a file [default: a SQLite file of this user]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand resume" -l store-file -d 'A file that holds the value of --store, for example a mounted secret [default: none]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand resume" -l config -d 'A configuration file to read instead of those of the system and of the user; \'\' reads none [default: both]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand resume" -l reason -d 'The reason, which is recorded and shown in history' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand resume" -l log-format -d 'The format of messages on stderr' -r -f -a "text\t'Lines of text'
json\t'One JSON object per line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand resume" -l client -d 'The client that gets tokens again' -r -f -a "(__fish_tokenrun_clients)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand resume" -l all -d 'Every group of the store'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand resume" -s y -l yes -d 'Ask no question'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand resume" -l json -d 'Print what was done as an array of JSON objects'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand resume" -s q -l quiet -d 'Print only what is wrong; twice: print nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand resume" -s v -l verbose -d 'Print every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand resume" -l force -d 'End the pauses of other operators too; without it, resuming several groups leaves those'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand resume" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -s g -l group -d 'The group, or a pattern such as \'etl-*\'; can be repeated' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path, or the path of a file [default: a SQLite file of this user]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -l store-file -d 'A file that holds the value of --store, for example a mounted secret [default: none]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -l config -d 'A configuration file to read instead of those of the system and of the user; \'\' reads none [default: both]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -l reason -d 'The reason, which is recorded and shown in history' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -l log-format -d 'The format of messages on stderr' -r -f -a "text\t'Lines of text'
json\t'One JSON object per line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -l from -d 'Every group whose token belongs to this client' -r -f -a "(__fish_tokenrun_clients)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -l to -d 'The client that gets the token' -r -f -a "(__fish_tokenrun_clients)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -l wait -d 'Wait until that client can have the token, at most this long; then exit code 75 [default: on a terminal, without a limit]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -l all -d 'Every group of the store'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -s y -l yes -d 'Ask no question'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -l json -d 'Print what was done as an array of JSON objects'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -s q -l quiet -d 'Print only what is wrong; twice: print nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -s v -l verbose -d 'Print every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -l any -d 'Any other client gets the token: the one that has it waits --head-start'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -l when-idle -d 'Only hand it off: the client gets the token next, when it is idle; a running job goes on'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand move" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand expect" -s g -l group -d 'The group' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand expect" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path, or the path of a file [default: a SQLite file of this user]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand expect" -l store-file -d 'A file that holds the value of --store, for example a mounted secret [default: none]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand expect" -l config -d 'A configuration file to read instead of those of the system and of the user; \'\' reads none [default: both]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand expect" -l reason -d 'The reason, which is recorded and shown in history' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand expect" -l log-format -d 'The format of messages on stderr' -r -f -a "text\t'Lines of text'
json\t'One JSON object per line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand expect" -l json -d 'Print what was done as an array of JSON objects'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand expect" -s q -l quiet -d 'Print only what is wrong; twice: print nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand expect" -s v -l verbose -d 'Print every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand expect" -l clear -d 'Expect no client'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand expect" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand revoke" -s g -l group -d 'The group, or a pattern such as \'etl-*\'; can be repeated' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand revoke" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path, or the path of a file [default: a SQLite file of this user]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand revoke" -l store-file -d 'A file that holds the value of --store, for example a mounted secret [default: none]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand revoke" -l config -d 'A configuration file to read instead of those of the system and of the user; \'\' reads none [default: both]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand revoke" -l reason -d 'The reason, which is recorded and shown in history' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand revoke" -l log-format -d 'The format of messages on stderr' -r -f -a "text\t'Lines of text'
json\t'One JSON object per line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand revoke" -l wait -d 'Wait until the job has ended and the token is free, at most this long; then exit code 75 [default: no; without a DURATION there is no limit]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand revoke" -l all -d 'Every group of the store'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand revoke" -s y -l yes -d 'Ask no question'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand revoke" -l json -d 'Print what was done as an array of JSON objects'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand revoke" -s q -l quiet -d 'Print only what is wrong; twice: print nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand revoke" -s v -l verbose -d 'Print every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand revoke" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand release" -s g -l group -d 'The group, or a pattern such as \'etl-*\'; can be repeated' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand release" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path, or the path of a file [default: a SQLite file of this user]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand release" -l store-file -d 'A file that holds the value of --store, for example a mounted secret [default: none]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand release" -l config -d 'A configuration file to read instead of those of the system and of the user; \'\' reads none [default: both]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand release" -l reason -d 'The reason, which is recorded and shown in history' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand release" -l log-format -d 'The format of messages on stderr' -r -f -a "text\t'Lines of text'
json\t'One JSON object per line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand release" -l all -d 'Every group of the store'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand release" -s y -l yes -d 'Ask no question'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand release" -l json -d 'Print what was done as an array of JSON objects'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand release" -s q -l quiet -d 'Print only what is wrong; twice: print nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand release" -s v -l verbose -d 'Print every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand release" -l force -d 'Free the token although a job holds it: that job can go on for a while, beside the next one'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand release" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and not __fish_seen_subcommand_from list forget" -s h -l help -d 'Print help'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and not __fish_seen_subcommand_from list forget" -f -a "list" -d 'List the keys that are done'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and not __fish_seen_subcommand_from list forget" -f -a "forget" -d 'Forget a key: the next run with it runs the job again'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from list" -s g -l group -d 'Only this group' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from list" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path, or the path of a file [default: a SQLite file of this user]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from list" -l store-file -d 'A file that holds the value of --store, for example a mounted secret [default: none]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from list" -l config -d 'A configuration file to read instead of those of the system and of the user; \'\' reads none [default: both]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from list" -l color -d 'When to show colours; auto: on a terminal, unless NO_COLOR is set' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t''
never\t''"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from list" -l utc -d 'Times in UTC (RFC 3339) instead of the zone of this terminal'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from list" -l json -d 'An array of JSON objects instead of a table'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from forget" -s g -l group -d 'The group' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from forget" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path, or the path of a file [default: a SQLite file of this user]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from forget" -l store-file -d 'A file that holds the value of --store, for example a mounted secret [default: none]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from forget" -l config -d 'A configuration file to read instead of those of the system and of the user; \'\' reads none [default: both]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from forget" -l reason -d 'The reason, which is recorded and shown in history' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from forget" -l log-format -d 'The format of messages on stderr' -r -f -a "text\t'Lines of text'
json\t'One JSON object per line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from forget" -l json -d 'Print what was done as an array of JSON objects'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from forget" -s q -l quiet -d 'Print only what is wrong; twice: print nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from forget" -s v -l verbose -d 'Print every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand once; and __fish_seen_subcommand_from forget" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and not __fish_seen_subcommand_from verify advance raise" -s h -l help -d 'Print help'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and not __fish_seen_subcommand_from verify advance raise" -f -a "verify" -d 'Check that a fencing token is the current one of its group: 0, or 76 if it is stale'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and not __fish_seen_subcommand_from verify advance raise" -f -a "advance" -d 'Record the highest fencing token that has used a resource: 0, or 76 if a higher one has'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and not __fish_seen_subcommand_from verify advance raise" -f -a "raise" -d 'Raise the fencing token of a group that no run holds'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from verify" -s g -l group -d 'The group' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from verify" -s f -l fence -d 'The fencing token' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from verify" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path, or the path of a file [default: a SQLite file of this user]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from verify" -l store-file -d 'A file that holds the value of --store, for example a mounted secret [default: none]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from verify" -l config -d 'A configuration file to read instead of those of the system and of the user; \'\' reads none [default: both]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from verify" -l log-format -d 'The format of messages on stderr' -r -f -a "text\t'Lines of text'
json\t'One JSON object per line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from verify" -l json -d 'Print the answer as an array of one JSON object'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from verify" -s q -l quiet -d 'Print only what is wrong; twice: print nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from verify" -s v -l verbose -d 'Print every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from verify" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from advance" -s g -l group -d 'The group that the token is of: the store must have granted it' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from advance" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path, or the path of a file [default: a SQLite file of this user]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from advance" -l store-file -d 'A file that holds the value of --store, for example a mounted secret [default: none]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from advance" -l config -d 'A configuration file to read instead of those of the system and of the user; \'\' reads none [default: both]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from advance" -l log-format -d 'The format of messages on stderr' -r -f -a "text\t'Lines of text'
json\t'One JSON object per line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from advance" -l json -d 'Print the answer as an array of one JSON object'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from advance" -s q -l quiet -d 'Print only what is wrong; twice: print nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from advance" -s v -l verbose -d 'Print every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from advance" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from raise" -s g -l group -d 'The group' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from raise" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path, or the path of a file [default: a SQLite file of this user]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from raise" -l store-file -d 'A file that holds the value of --store, for example a mounted secret [default: none]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from raise" -l config -d 'A configuration file to read instead of those of the system and of the user; \'\' reads none [default: both]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from raise" -l reason -d 'The reason, which is recorded and shown in history' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from raise" -l log-format -d 'The format of messages on stderr' -r -f -a "text\t'Lines of text'
json\t'One JSON object per line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from raise" -l to -d 'The least value after the rise: the highest that a resource has seen [default: a rise by a minute]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from raise" -l json -d 'Print what was done as an array of JSON objects'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from raise" -s q -l quiet -d 'Print only what is wrong; twice: print nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from raise" -s v -l verbose -d 'Print every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand fence; and __fish_seen_subcommand_from raise" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand init" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path, or the path of a file [default: a SQLite file of this user]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand init" -l store-file -d 'A file that holds the value of --store, for example a mounted secret [default: none]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand init" -l config -d 'A configuration file to read instead of those of the system and of the user; \'\' reads none [default: both]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand init" -l print-sql -d 'Print the SQL that makes the store, and a role with no more rights than tokenrun needs'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand init" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand doctor" -s g -l group -d 'Also compare the durations with those of this group' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand doctor" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path, or the path of a file [default: a SQLite file of this user]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand doctor" -l store-file -d 'A file that holds the value of --store, for example a mounted secret [default: none]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand doctor" -l config -d 'A configuration file to read instead of those of the system and of the user; \'\' reads none [default: both]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand doctor" -l heartbeat -d 'Time between two heartbeats [default: 10s]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand doctor" -l takeover-after -d 'How long a holder may be silent before another node takes over [default: 5m]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand doctor" -l keep -d 'How long after a run other nodes are refused; 0 releases the token when the job ends [default: 5m]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand doctor" -l head-start -d 'How long a node other than the last one waits before it takes an open token [default: 10s]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand doctor" -l at-least -d 'The least time from the start of this run to the start of the next, on any node [default: 0]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand doctor" -l kill-grace -d 'Time between TERM and KILL when the job is ended [default: 10s]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand doctor" -l store-timeout -d 'How long one call of the store may take [default: 10s, at most a tenth of takeover-after]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand doctor" -l json -d 'An array of JSON objects instead of lines'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand settle" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path, or the path of a file [default: a SQLite file of this user]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand settle" -l store-file -d 'A file that holds the value of --store, for example a mounted secret [default: none]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand settle" -l config -d 'A configuration file to read instead of those of the system and of the user; \'\' reads none [default: both]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand settle" -l reason -d 'The reason, which is recorded and shown in history' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand settle" -l log-format -d 'The format of messages on stderr' -r -f -a "text\t'Lines of text'
json\t'One JSON object per line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand settle" -l json -d 'Print what was done as an array of JSON objects'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand settle" -s q -l quiet -d 'Print only what is wrong; twice: print nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand settle" -s v -l verbose -d 'Print every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand settle" -s y -l yes -d 'Ask no question; needed without a terminal'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand settle" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand distrust" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path, or the path of a file [default: a SQLite file of this user]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand distrust" -l store-file -d 'A file that holds the value of --store, for example a mounted secret [default: none]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand distrust" -l config -d 'A configuration file to read instead of those of the system and of the user; \'\' reads none [default: both]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand distrust" -l reason -d 'The reason, which is recorded and shown in history' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand distrust" -l log-format -d 'The format of messages on stderr' -r -f -a "text\t'Lines of text'
json\t'One JSON object per line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand distrust" -l json -d 'Print what was done as an array of JSON objects'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand distrust" -s q -l quiet -d 'Print only what is wrong; twice: print nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand distrust" -s v -l verbose -d 'Print every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand distrust" -s y -l yes -d 'Ask no question; needed without a terminal'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand distrust" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand metrics" -s g -l group -d 'Only this group' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand metrics" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path, or the path of a file [default: a SQLite file of this user]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand metrics" -l store-file -d 'A file that holds the value of --store, for example a mounted secret [default: none]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand metrics" -l config -d 'A configuration file to read instead of those of the system and of the user; \'\' reads none [default: both]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand metrics" -l textfile -d 'Write the metrics to this file instead of stdout, for the textfile collector; the file is replaced as a whole' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand metrics" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand page" -s o -l output -d 'The file to write; it is replaced as a whole; - for stdout' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand page" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path, or the path of a file [default: a SQLite file of this user]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand page" -l store-file -d 'A file that holds the value of --store, for example a mounted secret [default: none]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand page" -l config -d 'A configuration file to read instead of those of the system and of the user; \'\' reads none [default: both]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand page" -s g -l group -d 'Only this group, or the groups that match a pattern such as \'etl-*\'; can be repeated' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand page" -l refresh -d 'A browser loads the page again after this time, such as 60s or 5m [default: never]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand page" -l utc -d 'Times in UTC instead of the local time zone'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand page" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand serve" -l listen -d 'The address and the port to listen on' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand serve" -s g -l group -d 'Only this group, or the groups that match a pattern such as \'etl-*\'; can be repeated' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand serve" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path, or the path of a file [default: a SQLite file of this user]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand serve" -l store-file -d 'A file that holds the value of --store, for example a mounted secret [default: none]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand serve" -l config -d 'A configuration file to read instead of those of the system and of the user; \'\' reads none [default: both]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand serve" -l refresh -d 'A browser loads the page again after this time' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand serve" -l log-format -d 'The format of messages on stderr' -r -f -a "text\t'Lines of text'
json\t'One JSON object per line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand serve" -l utc -d 'Times on the page in UTC instead of the local time zone'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand serve" -s q -l quiet -d 'Print only what is wrong; twice: print nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand serve" -s v -l verbose -d 'Print every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -s g -l group -d 'The group: what must run on one node at a time' -r -f -a "(__fish_tokenrun_groups)"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l wait -d 'Wait in the queue until the token can be taken, at most this long; then exit code 75 [default: no; without a DURATION there is no limit]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l once -d 'Run only if no run of this group with this key has succeeded: a date, a batch, a version [default: none: the job runs each time]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -s E -l conflict-exit-code -d 'Exit code if the token can\'t be taken now [default: 75]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l timeout -d 'End the job after this time, with exit code 124 [default: none]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l heartbeat -d 'Time between two heartbeats [default: 10s]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l takeover-after -d 'How long a holder may be silent before another node takes over [default: 5m]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l keep -d 'How long after a run other nodes are refused; 0 releases the token when the job ends [default: 5m]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l head-start -d 'How long a node other than the last one waits before it takes an open token [default: 10s]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l at-least -d 'The least time from the start of this run to the start of the next, on any node [default: 0]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l kill-grace -d 'Time between TERM and KILL when the job is ended [default: 10s]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l store-timeout -d 'How long one call of the store may take [default: 10s, at most a tenth of takeover-after]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l leftovers -d 'What happens to processes that the job leaves behind' -r -f -a "kill\t'They are ended too'
leave\t'They are left alone'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l capture -d 'Catch the output of the job, print it only if the job does not succeed, and store its last SIZE bytes for tokenrun output [default: no; without a SIZE 64KiB]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l done-exit-code -d 'Exit code if the key of --once is done already [default: 0]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l on-success -d 'A shell command to run after a success [default: none]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l on-failure -d 'A shell command to run after any end that is not a success [default: none]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l on-refused -d 'A shell command to run when the run is refused [default: none]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l hook-timeout -d 'How long a hook may take; then it is killed with every process that it has started [default: 10s]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l report -d 'Write what happened to this file as JSON when the run has ended [default: none]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l history-retain -d 'How long the history is kept, at least [default: 30d]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l output-retain -d 'How long captured outputs are kept, at least, but not longer than the history [default: 7d]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l output-count -d 'How many captured outputs of a group are kept, at most [default: 100]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l label -d 'A text that status and history show beside the run [default: none]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l once-retain -d 'How long keys that are done are kept, at least [default: 400d]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l log-format -d 'The format of messages on stderr' -r -f -a "text\t'Lines of text'
json\t'One JSON object per line'"
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l client-id -d 'The name of this node [default: $CLIENT_ID, else the host name]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l expected -d 'The client that gets the token first; recorded when the group is first used [default: none: the first client that comes gets the token]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -s s -l store -d 'Where the tokens are: postgres://user@host/database or another connection string of libpq, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path, or the path of a file [default: a SQLite file of this user]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l store-file -d 'A file that holds the value of --store, for example a mounted secret [default: none]' -r -F
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l config -d 'A configuration file to read instead of those of the system and of the user; \'\' reads none [default: both]' -r
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l move-on-failure -d 'After a failed run, let another client run the job next'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l close-lock -d 'Do not let the job inherit the lock that shows other runs on this host that it is alive'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -s q -l quiet -d 'Print only what is wrong; twice: print nothing'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -s v -l verbose -d 'Print every step'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l failback -d 'If this node is the expected client, take the token back when it is idle'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -l json -d 'An array of JSON objects instead of a table'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand config" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand completions" -s h -l help -d 'Print help'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand man" -s h -l help -d 'Print help'
complete -c tokenrun -n "__fish_tokenrun_using_subcommand help" -s h -l help -d 'Print help'

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
complete -c tokenrun -n "__fish_tokenrun_using_subcommand help" -f -a "exit-codes environment json configuration options metrics status history output explain check hold pause resume move expect revoke release once fence init doctor settle distrust page serve config help completions man"
