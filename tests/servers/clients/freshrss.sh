#!/bin/sh
# Makes a FreshRSS in a folder from its source, with one feed. Its address is 127.0.0.1 as a number, because
# it subscribes only from addresses that it takes for public.
set -e
folder=$1 port=$2 feed=$3 source=$4
cp -r "$source" "$folder/freshrss"
cd "$folder/freshrss"
php cli/do-install.php --default-user reader --auth-type none --environment production \
  --base-url "http://2130706433:$port/" --language en --db-type sqlite
php cli/create-user.php --user reader --password not-a-secret
php -r '(new PDO("sqlite:data/users/reader/db.sqlite"))->exec("delete from feed");'
printf '<opml version="2.0"><body><outline type="rss" text="blog" xmlUrl="%s"/></body></opml>' "$feed" >feeds.opml
php cli/import-for-user.php --user reader --filename feeds.opml
