#!/usr/bin/env bash
# Mirrors a Smart Feed into a file, with curl and jq: mirror.sh URL FILE [--once]
set -euo pipefail
url=$1 path=$2 timeout=55
[ "${3-}" = --once ] && timeout=0
[ -e "$path" ] || echo '{"cursor":"","items":{}}' >"$path"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

while :; do
  cursor=$(jq -r .cursor "$path")
  status=$(curl -sS -G "$url" --max-time 90 -D "$work/head" -o "$work/page" -w '%{http_code}' \
    -d order=modified --data-urlencode "since=cursor:$cursor" -d "timeout=$timeout") || status=0
  case $status in
  200) ;;
  0 | 429 | 5??) sleep 5; continue ;;
  410) echo "this feed is not served any more" >&2; exit 1 ;;
  *) echo "$status: $(cat "$work/page")" >&2; exit 1 ;;
  esac
  # The feed was restored from an older copy, which does not know all of these items.
  if grep -qi '^smart-feed-cursor: *ahead' "$work/head"; then
    echo "the feed was restored; mirror it into a new file" >&2
    exit 1
  fi
  # The cursor is not one of this feed, or of this reader's part of it: all items follow.
  reset=false
  grep -qi '^smart-feed-cursor: *reset' "$work/head" && reset=true
  # The cursor and the items go into one file at once: a mirror that is killed goes on where it was.
  jq -c --slurpfile page "$work/page" --argjson reset "$reset" '
    (if $reset then .items = {} else . end)
    | reduce $page[0].items[] as $item (.;
        if $item.deleted then del(.items[$item.id]) else .items[$item.id] = $item end)
    | .cursor = $page[0].last_cursor' "$path" >"$path.new"
  mv "$path.new" "$path"
  [ $timeout = 0 ] && [ "$(jq 'has("next")' "$work/page")" = false ] && break
done
