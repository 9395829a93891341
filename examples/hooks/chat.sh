#!/bin/sh
# A hook for --on-failure: a line in a chat, by a webhook that takes {"text": "…"} (Slack,
# Mattermost, Rocket.Chat, Google Chat).
set -eu
WEBHOOK=${CHAT_WEBHOOK:-https://chat.example.com/hooks/secret}

# A name in JSON: no backslash, quote or control character is left as it is.
plain() {
    printf '%s' "$1" | tr -d '\000-\037' | sed 's/[\\"]/\\&/g'
}

text="$(plain "$TOKENRUN_GROUP") on $(plain "$TOKENRUN_CLIENT_ID"): $TOKENRUN_OUTCOME"
text="$text${TOKENRUN_EXIT_CODE:+ ($TOKENRUN_EXIT_CODE)}, reason: $TOKENRUN_REASON"

exec curl --silent --show-error --fail --output /dev/null --max-time 8 \
    --header 'Content-Type: application/json' --data "{\"text\": \"$text\"}" "$WEBHOOK"
