// A host of MCP Apps: the published AppBridge over the sandbox of sandbox.html. The test reaches the server for it.
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

window.openApp = async ({ html, context, capabilities, result, sandbox }) => {
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts allow-same-origin");
  frame.style = "width: 100%; border: 0; height: 500px";
  const ready = new Promise((resolve) => {
    window.addEventListener("message", ({ source, data }) => {
      if (source === frame.contentWindow && data?.method === "ui/notifications/sandbox-proxy-ready") resolve();
    });
  });
  frame.src = sandbox;
  document.body.append(frame);
  await ready;

  const bridge = new AppBridge(null, { name: "host of the tests", version: "1" }, capabilities, { hostContext: context });
  const initialized = new Promise((resolve) => (bridge.oninitialized = resolve));
  bridge.oncalltool = (params) => window.callTool(params.name, params.arguments ?? {});
  bridge.onopenlink = async ({ url }) => {
    await window.openLink(url);
    return {};
  };
  bridge.onsizechange = ({ height }) => (frame.style.height = `${height}px`);
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  await bridge.sendSandboxResourceReady({ html });
  await initialized;
  await bridge.sendToolInput({ arguments: {} });
  await bridge.sendToolResult(result);
  window.bridge = bridge;
};
