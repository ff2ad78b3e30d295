#!/usr/bin/env bash
# Mirrors a Smart Feed into a file, with curl and jq: mirror.sh URL FILE [--once] [--sweep]
#
# A feed that was restored does not know all that this mirror holds. The mirror then reads the whole feed, and drops what it did not meet.
# If that is more than a tenth, it stops and asks; --sweep is the answer.
set -euo pipefail
url=$1 path=$2 once=false sweep=false
for flag in "${@:3}"; do
  case $flag in
  --once) once=true ;;
  --sweep) sweep=true ;;
  esac
done
[ -e "$path" ] || echo '{"cursor":"","items":{}}' >"$path"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

while :; do
  cursor=$(jq -r .cursor "$path")
  timeout=$(jq --argjson once "$once" 'if $once or .met then 0 else 55 end' "$path")
  status=$(curl -sS -G "$url" --max-time 90 -D "$work/head" -o "$work/page" -w '%{http_code}' \
    -d order=modified --data-urlencode "since=cursor:$cursor" -d "timeout=$timeout") || status=0
  case $status in
  200) ;;
  0 | 429 | 5??) sleep 5; continue ;;
  410) echo "this feed is not served any more" >&2; exit 1 ;;
  *) echo "$status: $(cat "$work/page")" >&2; exit 1 ;;
  esac
  generation=$(tr -d '\r' <"$work/head" | awk -F': *' 'tolower($1) == "smart-feed-generation" { print $2 }')
  known=$(jq -r --arg now "$generation" '.generation // $now' "$path")
  if [ "$known" != "$generation" ] || grep -qi '^smart-feed-cursor: *ahead' "$work/head"; then
    # All of the new generation is read. Nothing goes before the end of it.
    jq -c --arg now "$generation" '.generation = $now | .met = {} | .cursor = ""' "$path" >"$path.new"
    mv "$path.new" "$path"
    continue
  fi
  # The cursor is not one of this feed, or of this reader's part of it: all items follow.
  reset=false
  grep -qi '^smart-feed-cursor: *reset' "$work/head" && reset=true
  # The cursor and the items go into one file at once: a mirror that is killed goes on where it was.
  jq -c --slurpfile page "$work/page" --argjson reset "$reset" --arg now "$generation" '
    (if $reset then .items = {} | del(.met) else . end)
    | .generation = $now
    | reduce $page[0].items[] as $item (.;
        (if .met then .met[$item.id] = true else . end)
        | if $item.deleted then del(.items[$item.id]) else .items[$item.id] = $item end)
    | .cursor = $page[0].last_cursor' "$path" >"$path.new"
  mv "$path.new" "$path"
  [ "$(jq 'has("next")' "$work/page")" = true ] && continue
  if jq -e .met "$path" >/dev/null; then
    unmet=$(jq '. as $s | [.items | keys[] | select($s.met[.] | not)] | length' "$path")
    if ! $sweep && [ $((unmet * 10)) -gt "$(jq '.items | length' "$path")" ]; then
      echo "the feed was restored or begun anew, and $unmet items are not in it any more; --sweep drops them" >&2
      exit 1
    fi
    jq -c '. as $s | .items |= with_entries(select($s.met[.key])) | del(.met)' "$path" >"$path.new"
    mv "$path.new" "$path"
  fi
  $once && break
done
