// A session of the TypeScript SDK's v2 client, in either protocol era.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { runSession } from "./session.mjs";

await runSession(async ({ era, target, name, onListChanged, capabilities, answers }) => {
  const client = new Client(
    { name: name || "e2e-typescript-v2", version: "1.0.0" },
    {
      versionNegotiation: { mode: era === "legacy" ? "legacy" : { pin: era } },
      capabilities,
      listChanged: { tools: { autoRefresh: false, onChanged: onListChanged } },
    },
  );
  for (const [method, answer] of Object.entries(answers)) {
    client.setRequestHandler(method, answer);
  }
  const transport = target.url
    ? new StreamableHTTPClientTransport(new URL(target.url), { requestInit: { headers: target.headers } })
    : new StdioClientTransport({ ...target, stderr: "inherit" });
  await client.connect(transport);
  return { client, protocolVersion: () => client.getNegotiatedProtocolVersion() };
});
