// One session of an MCP client: connect, do the steps, print one JSON document, end.
// Which SDK the client comes from is decided by the script that calls this.
//
// The only argument is JSON: {"era", "target": {"command", "args", "env"} | {"url", "headers"}, "steps": [...]}.
// A step is {"list": true}, {"call": NAME, "arguments": {...}, "progress": true} or {"awaitListChanged": SECONDS},
// the last one meaning: do nothing until a change of the tool list was announced.

export async function runSession(connect) {
  const { era, target, steps } = JSON.parse(process.argv[2]);
  const announced = listChanges();
  const { client, protocolVersion } = await connect({ era, target, onListChanged: announced.add });
  const version = protocolVersion();
  const results = [];
  for (const step of steps) {
    results.push(await outcome(() => perform(client, step, announced)));
  }
  await client.close();
  process.stdout.write(JSON.stringify({ protocolVersion: version, results }));
}

async function perform(client, step, announced) {
  if (step.list) {
    return (await client.listTools()).tools;
  }
  if (step.awaitListChanged) {
    return { listChanges: await announced.first(step.awaitListChanged * 1000) };
  }
  const progress = [];
  const onprogress = step.progress ? (update) => progress.push(update) : undefined;
  const result = await client.callTool({ name: step.call, arguments: step.arguments ?? {} }, ...callOptions(client, { onprogress }));
  return step.progress ? { result, progress } : result;
}

function callOptions(client, options) {
  // The 1.x client takes a result schema between the request and the options.
  return client.takesResultSchema ? [undefined, options] : [options];
}

async function outcome(action) {
  try {
    return await action();
  } catch (error) {
    return { error: { code: error.code ?? null, message: String(error.message ?? error) } };
  }
}

function listChanges() {
  let count = 0;
  let wake = () => {};
  return {
    add: () => {
      count += 1;
      wake();
    },
    first: (waitMs) =>
      new Promise((resolve, reject) => {
        if (count) {
          resolve(count);
          return;
        }
        const timer = setTimeout(() => reject(new Error(`no list change within ${waitMs} ms`)), waitMs);
        wake = () => {
          clearTimeout(timer);
          resolve(count);
        };
      }),
  };
}
