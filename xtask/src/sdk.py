# Streams every reply of the scripted API with the official SDK for Python, and prints the messages as JSON.
import json
import sys

import anthropic

client = anthropic.Anthropic(base_url=sys.argv[1], api_key="sk-test", max_retries=0)
for _ in range(int(sys.argv[2])):
    with client.messages.stream(
        model="claude-sonnet-4-5", max_tokens=1024, messages=[{"role": "user", "content": "Hello"}]
    ) as stream:
        message = stream.get_final_message()
    print(json.dumps(message.to_dict(mode="json", exclude_unset=True)))
