"""Flask-WebSub, a subscriber of WebSub: discovers the hub of one page, subscribes, and writes a line into
heard.txt of a folder for each confirmation and each push."""

import re
import sys
import threading
import time

from flask import Flask
from flask_websub.subscriber import (
    SQLite3SubscriberStorage,
    SQLite3TempSubscriberStorage,
    Subscriber,
    discover,
)

folder, port, page = sys.argv[1:]


def hear(line):
    with open(f"{folder}/heard.txt", "a", encoding="utf-8") as heard:
        heard.write(line + "\n")


app = Flask(__name__)
app.config["SERVER_NAME"] = f"127.0.0.1:{port}"
# It refuses a secret without https.
app.config["AUTO_SET_SECRET"] = False
subscriber = Subscriber(
    SQLite3SubscriberStorage(f"{folder}/known.sqlite3"),
    SQLite3TempSubscriberStorage(f"{folder}/asked.sqlite3"),
)
app.register_blueprint(subscriber.build_blueprint(url_prefix="/callbacks"))


@subscriber.add_listener
def pushed(topic, callback_id, body):
    for title in re.findall(rb"<title[^>]*>(Post \d+)", body):
        hear(f"item {title.decode()} of {topic}")


@subscriber.add_error_handler
def failed(topic, callback_id, reason):
    hear(f"error {reason}")


@subscriber.add_success_handler
def confirmed(topic, callback_id, mode):
    hear(f"{mode}d {topic}")


def subscribe():
    time.sleep(1)
    with app.app_context():
        subscriber.subscribe(**discover(page))


threading.Thread(target=subscribe, daemon=True).start()
app.run(host="127.0.0.1", port=int(port))
