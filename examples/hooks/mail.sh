#!/bin/sh
# A hook for --on-failure: a mail with the end of a run, and with what its job has written. It needs
# a sendmail, which every mail server and msmtp bring.
#
# cron sends such a mail by itself (examples/cron); this is for timers, containers and scripts.
set -eu
TO=${MAIL_TO:-root}
SENDMAIL=${SENDMAIL:-/usr/sbin/sendmail}

# A failure has its exit status; of a holder that vanished nothing more is known.
how="$TOKENRUN_OUTCOME${TOKENRUN_EXIT_CODE:+ ($TOKENRUN_EXIT_CODE)}, reason: $TOKENRUN_REASON"

{
    printf 'To: %s\n' "$TO"
    printf 'Subject: %s on %s: %s\n' "$TOKENRUN_GROUP" "$TOKENRUN_CLIENT_ID" "$TOKENRUN_OUTCOME"
    printf 'Content-Type: text/plain; charset=UTF-8\n\n'
    printf '%s on %s: %s\n\n' "$TOKENRUN_GROUP" "$TOKENRUN_CLIENT_ID" "$how"
    cat "$TOKENRUN_OUTPUT_FILE"
} | "$SENDMAIL" -t
