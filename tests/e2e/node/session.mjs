// One session of an MCP client: connect, do the steps, print one JSON document, end.
// Which SDK the client comes from is decided by the script that calls this.
//
// The only argument is JSON: {"era", "target": {"command", "args", "env"} | {"url", "headers"}, "name", "steps": [...],
// "answers": {METHOD: [...]}}. The client can do what it has answers for: each request of the server takes the next
// answer of its method, {"refuse": MESSAGE} refuses, and where none is left the client refuses too.
// A step is {"list": true}, {"call": NAME, "arguments": {...}, "progress": true} or {"awaitTool": NAME, "within": SECONDS},
// the last one meaning: list again after each announced change, and only then, until that tool is there.

export async function runSession(connect) {
  const { era, target, steps, name, answers } = JSON.parse(process.argv[2]);
  const announced = listChanges();
  const asked = [];
  const { client, protocolVersion } = await connect({
    era,
    target,
    name,
    onListChanged: announced.add,
    capabilities: capabilities(answers),
    answers: answerers(answers, asked),
  });
  const version = protocolVersion();
  const results = [];
  for (const step of steps) {
    results.push(await outcome(() => perform(client, step, announced)));
  }
  await client.close();
  process.stdout.write(JSON.stringify({ protocolVersion: version, results, asked }));
}

async function perform(client, step, announced) {
  if (step.list) {
    return (await client.listTools()).tools;
  }
  if (step.awaitTool) {
    return awaitTool(client, step.awaitTool, announced, Date.now() + step.within * 1000);
  }
  const progress = [];
  const onprogress = step.progress ? (update) => progress.push(update) : undefined;
  const result = await client.callTool({ name: step.call, arguments: step.arguments ?? {} }, ...callOptions(client, { onprogress }));
  return step.progress ? { result, progress } : result;
}

const CAPABILITIES = {
  "elicitation/create": { elicitation: { form: {} } },
  "sampling/createMessage": { sampling: { tools: {} } },
};

function capabilities(answers) {
  return Object.assign({}, ...Object.keys(answers).map((method) => CAPABILITIES[method]));
}

function answerers(answers, asked) {
  const entries = Object.entries(answers).map(([method, given]) => {
    const left = [...given];
    const answer = async (request) => {
      asked.push({ method, params: request.params });
      const next = left.shift() ?? { refuse: "no answer is left" };
      if (next.refuse) {
        throw new Error(next.refuse);
      }
      return next;
    };
    return [method, answer];
  });
  return Object.fromEntries(entries);
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

async function awaitTool(client, name, announced, endsAtMs) {
  for (;;) {
    await announced.next(endsAtMs - Date.now());
    const { tools } = await client.listTools();
    if (tools.some((tool) => tool.name === name)) {
      return tools;
    }
  }
}

function listChanges() {
  let unseen = 0;
  let wake = () => {};
  return {
    add: () => {
      unseen += 1;
      wake();
    },
    next: (waitMs) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error("no further list change was announced")), waitMs);
        wake = () => {
          if (unseen) {
            unseen = 0;
            clearTimeout(timer);
            resolve();
          }
        };
        wake();
      }),
  };
}
