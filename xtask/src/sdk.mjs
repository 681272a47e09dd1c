// Streams every reply of the scripted API with the official SDK for JavaScript, and prints the messages as JSON.
import Anthropic from "@anthropic-ai/sdk";

const [url, count] = process.argv.slice(2);
const client = new Anthropic({ baseURL: url, apiKey: "sk-test", maxRetries: 0 });
for (let i = 0; i < Number(count); i++) {
  const stream = client.messages.stream({
    model: "claude-sonnet-4-5",
    max_tokens: 1024,
    messages: [{ role: "user", content: "Hello" }],
  });
  console.log(JSON.stringify(await stream.finalMessage()));
}
