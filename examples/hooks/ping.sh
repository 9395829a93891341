#!/bin/sh
# A hook for --on-success and --on-failure: calls the URL of a monitoring service that expects a call
# after each night, and that reports a night without one. Many services take a failure at /fail.
#
# One node calls for a night: a node that is refused runs --on-refused instead, which calls nothing.
set -eu
URL=${PING_URL:-https://ping.example.com/nightly}

case $TOKENRUN_OUTCOME,$TOKENRUN_EXIT_CODE in
succeeded,0) ;;
*) URL=$URL/fail ;;
esac

# The output of the run is the body. curl ends before --hook-timeout (10 s).
exec curl --silent --show-error --fail --output /dev/null --max-time 8 --retry 2 \
    --data-binary "@$TOKENRUN_OUTPUT_FILE" "$URL"
