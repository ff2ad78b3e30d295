"""Verifies messages with the standardwebhooks package of PyPI: FILE SECRET."""
import json
import sys

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

messages = json.load(open(sys.argv[1], encoding="utf-8"))
webhook = Webhook(sys.argv[2])
for message in messages:
    webhook.verify(message["body"], message["headers"])
    try:
        webhook.verify(message["body"] + " ", message["headers"])
    except WebhookVerificationError:
        continue
    sys.exit("a changed body was taken")
print(len(messages))
