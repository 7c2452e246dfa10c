// A session of the TypeScript SDK's v2 client, in either protocol era.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { runSession } from "./session.mjs";

await runSession(async ({ era, target, onListChanged }) => {
  const client = new Client(
    { name: "e2e-typescript-v2", version: "1.0.0" },
    {
      versionNegotiation: { mode: era === "legacy" ? "legacy" : { pin: era } },
      listChanged: { tools: { autoRefresh: false, onChanged: onListChanged } },
    },
  );
  const transport = target.url
    ? new StreamableHTTPClientTransport(new URL(target.url), { requestInit: { headers: target.headers } })
    : new StdioClientTransport({ ...target, stderr: "inherit" });
  await client.connect(transport);
  return { client, protocolVersion: () => client.getNegotiatedProtocolVersion() };
});
