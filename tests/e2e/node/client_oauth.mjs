// A client of the TypeScript SDK that knows nothing but the address of an MCP server: it finds the identity provider,
// registers itself, logs in, and calls a tool.
//
// The only argument is JSON: {"url", "call": NAME, "arguments"}. Prints what it went through and the answer.
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";

const job = JSON.parse(process.argv[2]);
const redirectUrl = "http://127.0.0.1:9/callback";
const kept = {};
let code;

const provider = {
  redirectUrl,
  clientMetadata: {
    client_name: "e2e-typescript",
    redirect_uris: [redirectUrl],
    grant_types: ["authorization_code"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  },
  state: () => "some-state",
  clientInformation: () => kept.client,
  saveClientInformation: (client) => void (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => void (kept.tokens = tokens),
  saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
  codeVerifier: () => kept.verifier,
  redirectToAuthorization: async (url) => {
    // What a browser does whose user is logged in at the provider.
    const answer = await fetch(url, { redirect: "manual" });
    const back = new URL(answer.headers.get("location"));
    kept.asked = Object.fromEntries(url.searchParams);
    code = back.searchParams;
  },
};

const connect = async () => {
  const client = new Client({ name: "e2e-typescript", version: "1.0.0" });
  const transport = new StreamableHTTPClientTransport(new URL(job.url), { authProvider: provider });
  try {
    await client.connect(transport);
    return { client };
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
    return { transport };
  }
};

const first = await connect();
if (first.client) throw new Error("it got in without a login");
await first.transport.finishAuth(code);
const { client } = await connect();
const result = await client.callTool({ name: job.call, arguments: job.arguments });
process.stdout.write(JSON.stringify({ asked: kept.asked, result }));
await client.close();
