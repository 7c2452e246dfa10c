// The script of our MCP Apps. It shows what one tool returns, and asks for it again while something waits.
// It can call that tool and open the page of goat-mcp; it decides nothing.
(() => {
  "use strict";
  const TOOL = document.documentElement.dataset.tool;
  const VERSION = document.documentElement.dataset.version;
  const OFTEN_MS = 2000;
  const OFTEN_FOR_MS = 60000;
  const SELDOM_MS = 10000;
  // A host has names of its own for its colours. They are taken only together: a mixture might be unreadable.
  const COLOURS = {
    "--page": "--color-background-primary",
    "--surface": "--color-background-primary",
    "--sunken": "--color-background-secondary",
    "--text": "--color-text-primary",
    "--muted": "--color-text-secondary",
  };
  const FONTS = { "--text-font": "--font-sans", "--code-font": "--font-mono" };
  const root = document.documentElement;
  const main = document.querySelector("main");
  const note = document.querySelector("[role=status]");
  const darkRules = [...document.styleSheets[0].cssRules].filter(
    (rule) => rule instanceof CSSMediaRule && rule.conditionText.includes("prefers-color-scheme: dark"),
  );
  const asked = new Map();
  let lastId = 0;
  let host = {};
  let shown = null;
  let began = Date.now();
  let timer = 0;
  let ended = false;

  function post(message) {
    window.parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
  }

  function request(method, params) {
    const id = ++lastId;
    post({ id, method, params });
    return new Promise((resolve, reject) => asked.set(id, { resolve, reject }));
  }

  function say(text) {
    note.textContent = text;
    note.hidden = !text;
  }

  function show(result) {
    const html = result?._meta?.["goat-mcp/html"];
    if (html === shown && html !== undefined) return;
    const open = new Set([...main.querySelectorAll("details[open]")].map((one) => one.id));
    const focused = document.activeElement?.id;
    if (typeof html === "string") {
      const parsed = document.createElement("template");
      parsed.innerHTML = html; // made by our server, escaped; the policy of this document runs nothing in it
      main.replaceChildren(parsed.content);
    } else {
      const text = document.createElement("pre");
      text.textContent = (result?.content ?? []).map((block) => block.text ?? "").join("\n");
      main.replaceChildren(text);
    }
    shown = html;
    for (const one of main.querySelectorAll("details")) if (open.has(one.id)) one.open = true;
    if (focused) document.getElementById(focused)?.focus();
    for (const button of main.querySelectorAll("button[data-open]")) {
      button.hidden = !host.capabilities?.openLinks || !isOurPage(button.dataset.open);
    }
    filter();
    say("");
    schedule(Boolean(main.querySelector("[data-waits]")));
  }

  function schedule(waits) {
    window.clearTimeout(timer);
    if (!waits || ended || !host.capabilities?.serverTools) return;
    timer = window.setTimeout(refresh, Date.now() - began < OFTEN_FOR_MS ? OFTEN_MS : SELDOM_MS);
  }

  async function refresh() {
    window.clearTimeout(timer);
    if (document.hidden) return; // when it is seen again, it is asked for again
    try {
      const result = await request("tools/call", { name: TOOL, arguments: {} });
      if (result.isError) say("This could not be updated.");
      else show(result);
    } catch {
      say("This could not be updated: the host did not pass the call on.");
    }
  }

  function isOurPage(address) {
    try {
      const url = new URL(address);
      return url.protocol === "http:" && ["127.0.0.1", "localhost", "[::1]"].includes(url.hostname)
        && url.pathname.startsWith("/ui") && !url.username && !url.password && !url.search;
    } catch {
      return false;
    }
  }

  function filter() {
    const box = document.querySelector("input[type=search]");
    if (!box) return;
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of main.querySelectorAll("[data-words]")) {
      row.hidden = !words.every((word) => row.dataset.words.toLowerCase().includes(word));
    }
    for (const part of main.querySelectorAll("[data-part]")) {
      part.hidden = words.length > 0 && !part.querySelector("[data-words]:not([hidden])");
      if (part.tagName === "DETAILS" && words.length > 0) part.open = !part.hidden;
    }
  }

  function adopt(context) {
    host.context = { ...host.context, ...context };
    const { theme, styles } = host.context;
    if (theme === "light" || theme === "dark") {
      root.style.colorScheme = theme;
      for (const rule of darkRules) rule.media.mediaText = theme === "dark" ? "all" : "not all";
    }
    const given = styles?.variables ?? {};
    const all = Object.values(COLOURS).every((name) => given[name]);
    for (const [ours, theirs] of Object.entries({ ...(all ? COLOURS : {}), ...FONTS })) {
      if (given[theirs]) root.style.setProperty(ours, given[theirs]);
    }
  }

  const notifications = {
    "ui/notifications/host-context-changed": adopt,
    "ui/notifications/tool-result": (result) => {
      // A host may render this document for a tool of another server: its words are not shown as ours.
      const tool = host.context?.toolInfo?.tool?.name ?? TOOL;
      if (tool === TOOL) show(result);
      else refresh();
    },
    "ui/notifications/tool-cancelled": () => say("The call was cancelled."),
  };
  const requests = {
    ping: () => ({}),
    "ui/resource-teardown": () => {
      ended = true;
      window.clearTimeout(timer);
      return {};
    },
  };

  window.addEventListener("message", ({ source, data }) => {
    if (source !== window.parent || data?.jsonrpc !== "2.0") return;
    if (data.method === undefined) {
      const waiting = asked.get(data.id);
      asked.delete(data.id);
      if (data.error) waiting?.reject(new Error(data.error.message));
      else waiting?.resolve(data.result);
    } else if (data.id === undefined) {
      notifications[data.method]?.(data.params ?? {});
    } else if (requests[data.method]) {
      post({ id: data.id, result: requests[data.method]() });
    } else {
      post({ id: data.id, error: { code: -32601, message: "method not found" } });
    }
  });

  document.addEventListener("click", async ({ target }) => {
    const button = target instanceof Element ? target.closest("button[data-open]") : null;
    if (!button || !isOurPage(button.dataset.open)) return;
    try {
      const answer = await request("ui/open-link", { url: button.dataset.open });
      if (answer?.isError) say("The host does not open the page. Run goat-mcp ui.");
    } catch {
      say("The host does not open the page. Run goat-mcp ui.");
    }
  });
  document.addEventListener("input", filter);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && main.querySelector("[data-waits]")) refresh();
  });

  async function start() {
    const answer = await request("ui/initialize", {
      protocolVersion: "2026-01-26",
      appInfo: { name: "goat-mcp", version: VERSION },
      appCapabilities: {},
    });
    host = { capabilities: answer.hostCapabilities ?? {}, context: {} };
    adopt(answer.hostContext ?? {});
    post({ method: "ui/notifications/initialized", params: {} });
    began = Date.now();
    new ResizeObserver(() => {
      const { width, height } = root.getBoundingClientRect();
      post({ method: "ui/notifications/size-changed", params: { width: Math.ceil(width), height: Math.ceil(height) } });
    }).observe(root);
  }

  start();
})();
