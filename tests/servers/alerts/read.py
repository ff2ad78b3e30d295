"""Reads a mail as the library of Python does, and prints its facts as JSON: FILE."""
import email
import email.policy
import json
import sys

mail = email.message_from_binary_file(open(sys.argv[1], "rb"), policy=email.policy.default)
facts = {name: mail[name] for name in ["Subject", "From", "To", "Auto-Submitted", "Message-ID", "Date"]}
facts["text"] = mail.get_content()
facts["defects"] = [str(defect) for defect in mail.defects]
print(json.dumps(facts))
