"""Two principals of one gateway: whatever is stored for one is not there for the other (R-HTTP-3b).

The lists of resources and stores are read from the code. One that is new has no row here, and fails until it has.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import goat_mcp
from goat_mcp.agents.records import AgentFacts, AgentRecord, AgentRecords
from goat_mcp.agents.spawner import LiveAgent, LiveAgents
from goat_mcp.agents.teams.bus import AgentBus
from goat_mcp.agents.teams.coordinator import TeamCoordinator
from goat_mcp.calls.permissions.mode import Approval, Mode
from goat_mcp.calls.permissions.plan_approval import PlanApproval
from goat_mcp.calls.permissions.remembered import RememberedRules
from goat_mcp.calls.permissions.session_modes import SessionModes
from goat_mcp.catalog.resource_catalog import UriOwnership
from goat_mcp.commands.sandbox.temporary_folders import SessionFolders
from goat_mcp.commands.tasks.manager import TaskManager
from goat_mcp.commands.tasks.records import TaskRecords
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ToolError
from goat_mcp.core.model import ModelMessage
from goat_mcp.core.result import ToolResult, text_block
from goat_mcp.files.changes.review import Review
from goat_mcp.files.changes.staged_files import SessionStage
from goat_mcp.files.memory import Memories
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.caller_identity import CallerIdentity
from goat_mcp.settings.settings import Settings
from goat_mcp.state.call_log import CallLog
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.plans import PlanStatus, PlanStore, Presenter, all_plans, find_plan
from goat_mcp.state.session_settings import SessionSettings
from goat_mcp.state.sessions import Sessions
from goat_mcp.state.spill import SpillFiles
from goat_mcp.state.todos import Todos

pytestmark = pytest.mark.anyio
MARK = "belongs-to-ada"
PACKAGE = Path(goat_mcp.__file__).parent


@dataclass
class Client:
    """One principal's session."""

    gateway: Gateway
    principal: str
    session: str
    numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def ctx(self) -> ToolContext:
        call_id = f"{MARK}-{next(self.numbers)}" if self.principal.endswith(":ada") else f"call-{next(self.numbers)}"
        return ToolContext(call_id=call_id, principal=self.principal, session_key=self.session)

    async def call(self, name: str, /, **arguments: Any) -> ToolResult:
        return await self.gateway.call(name, arguments, self.ctx)

    async def read(self, uri: str) -> str | None:
        for provider in self.gateway.resources.providers:
            if (reading := await provider.read(uri, self.ctx)) is not None:
                return reading.text
        return None


@pytest.fixture
def gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gateway:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    project = tmp_path / "project"
    project.mkdir()
    settings = {
        "workspace": [project],
        "mode": "bypassPermissions",
        "files": {"review_mode": True},
        "catalog": {"toolsets": ["core", "state", "tasks", "goa"]},
    }
    state = StateDirectory(tmp_path / "state")
    return Gateway(Settings.model_validate(settings), approval=Approval.HOST, state=state, serves_http=True)


PAIRS = (("profile:ada", "profile:bob"), ("user:ada", "user:Ada"))
"""Those of tokens of our own, and people whose names differ in the least that they can."""


@pytest.fixture(params=PAIRS, ids=["profiles", "users"])
async def clients(gateway: Gateway, request: pytest.FixtureRequest) -> AsyncGenerator[tuple[Client, Client]]:
    """Two clients of one name, as `CallerIdentity` keys them."""
    ada, bob = (Client(gateway, name, f"principal:{name.replace(':', '%3A')}:same") for name in request.param)
    yield ada, bob
    await gateway.services.tasks().stop_all()
    gateway.database.close()
    gateway.audit.close()


async def everything_of(ada: Client) -> dict[str, str]:
    """Have ada leave something in every store. Returns the URIs of hers, each by the template that it fits."""
    project = ada.gateway.workspace.roots[0]
    await ada.call("TodoWrite", todos=[{"content": MARK, "status": "pending", "activeForm": MARK}])
    task = await ada.call("Bash", command=f"echo {MARK}; sleep 60", run_in_background=True)
    long = await ada.call("Bash", command=f"for n in $(seq 20000); do echo {MARK} $n; done")
    await ada.call("Write", file_path=f"{project}/staged.txt", content=MARK)
    await ada.call("memento__note", action="write", name=MARK, content=MARK)
    await ada.call("Config", setting="output.max_chars", value=12_345)
    ada.gateway.modes.choose(ada.session, Mode.PLAN)
    await ada.call("ExitPlanMode", plan=f"# {MARK}")
    assert not task.is_error and not long.is_error
    spilled = re.search(r"/spill/\S+/([A-Za-z0-9_-]+\.txt)", long.text)
    assert spilled is not None
    uris = {"goat://output/{name}": f"goat://output/{spilled[1]}"}
    for root, member, template in (
        ("goat://tasks", "tasks", "goat://tasks/{id}"),
        ("goat://plans", "plans", "goat://plans/{name}"),
        ("goat://review", "waiting", "goat://review/{id}"),
    ):
        entries = json.loads(await ada.read(root) or "{}")[member]
        uris[template] = next(entry["uri"] for entry in entries if "memory" not in entry.get("path", ""))
    return uris


OWN = "each principal's own"
RESOURCES = {
    **dict.fromkeys(("goat://todos", "goat://tasks", "goat://plans", "goat://review", "goat://calls"), OWN),
    **dict.fromkeys(("goat://tasks/{id}", "goat://plans/{name}", "goat://review/{id}", "goat://output/{name}"), OWN),
    "goat://memory": OWN,
    "goat://errors": "a page of the documentation",
    "goat://errors/{code}": "a page of the documentation",
    "goat://status": "of the server; what is the operator's is left out over HTTP, and what rights hide",
}


async def test_f13_02_resources_every_one_is_its_readers_own(clients: tuple[Client, Client]) -> None:
    ada, bob = clients
    providers = ada.gateway.resources.providers
    listed = {str(entry["uri"]) for provider in providers for entry in provider.entries}
    templates = {str(entry["uriTemplate"]) for provider in providers for entry in provider.templates}
    uris = await everything_of(ada)

    assert listed | templates == set(RESOURCES), "a resource without a row here"
    for name in sorted(listed | templates):
        uri = uris.get(name, name)
        if RESOURCES[name] != OWN:
            assert MARK not in (await bob.read(uri) or ""), uri
            continue
        assert MARK in (await ada.read(uri) or ""), uri
        foreign = await bob.read(uri)
        assert foreign is None if name in templates else MARK not in (foreign or ""), uri
        watcher = f"{uri.rsplit('/', 1)[0]}/unknown" if name in templates else ""
        assert not watcher or await bob.read(watcher) is None


async def test_f13_02_tools_show_nothing_of_another_principal(clients: tuple[Client, Client]) -> None:
    ada, bob = clients
    uris = await everything_of(ada)
    (plan,) = ada.gateway.plan_approval.plans.newest_first(ada.principal)
    spilled = next((ada.gateway.state.path / "spill").rglob("*/*.txt"))
    project = ada.gateway.workspace.roots[0]

    answers = [
        await bob.call("TaskOutput", task_id=uris["goat://tasks/{id}"].rsplit("/", 1)[1], block=False),
        await bob.call("TaskStop", task_id=uris["goat://tasks/{id}"].rsplit("/", 1)[1]),
        await bob.call("TaskOutput", task_id="unknown", block=False),
        await bob.call("Read", file_path=str(spilled)),
        await bob.call("Read", file_path=plan.file_path),
        await bob.call("Read", file_path=f"{project}/staged.txt"),
        await bob.call("Grep", pattern=MARK, path=str(spilled.parent)),
        await bob.call("memento__note", action="list"),
        await bob.call("memento__note", action="list", scope="global"),
        await bob.call("Config", setting="output.max_chars"),
        *[await bob.call("goa_command__run", command=one) for one in ("tasks", "memory list", "review list")],
    ]

    bob.gateway.modes.choose(bob.session, Mode.PLAN)
    answers.append(await bob.call("ExitPlanMode"))

    texts = [json.dumps([*answer.content, answer.facts, answer.structured]) for answer in answers]
    # A refusal may name what was asked for: that is bob's own word.
    assert [text for text, answer in zip(texts, answers, strict=True) if MARK in text and not answer.is_error] == []
    assert [answer.error_code for answer in answers[:2]] == ["E_TASK_UNKNOWN", "E_TASK_UNKNOWN"]
    assert "12345" not in texts[9] and "12,345" not in texts[9]
    (task,) = ada.gateway.services.tasks().running(ada.principal)
    assert task.principal == ada.principal


TEXTS = (
    *("# Plan", "# Plan\n\n1. Fix it\n", "", " ", "\u202eplan", "plan\x00", "# Plan " * 300, "PLAN", "plan ", "\tplan"),
    *("# \u0440lan", "- [ ] a", "1. a\n2. b", "```\nrm\n```", "<b>plan</b>", "{}", "[]", "null", "goat://plans/x"),
    *("a" * 80, "../../plan", "plan/..", "%2e", "caf\u00e9", "\ud83d\udc10", "x\ny", "x\r\ny", "0", "-", "--all"),
)


@pytest.mark.parametrize("number", range(len(TEXTS)))
async def test_f13_02_plans_an_approval_is_for_who_presented_the_plan(
    clients: tuple[Client, Client], number: int
) -> None:
    ada, bob = clients
    text = TEXTS[number].replace("\ud83d\udc10", "goat")
    other = Client(ada.gateway, ada.principal, "session:profile%3Aada:another")
    approval = ada.gateway.plan_approval
    for client in (ada, bob, other):
        ada.gateway.modes.choose(client.session, Mode.PLAN)
    plan = approval.submit(Presenter(ada.principal, ada.session), text)
    found = find_plan(ada.gateway.state, plan.name)  # what the operator sees, and approves
    assert found is not None
    found[0].decide(found[1], PlanStatus.APPROVED)

    taken = [await client.call("ExitPlanMode", plan=text if text.strip() else "again") for client in (bob, other)]
    taken += [await client.call("ExitPlanMode") for client in (bob, other)]
    for client in (bob, other):
        await client.call("Config", setting="mode")  # a call looks for a decision
        with pytest.raises(ToolError):
            approval.approve(Presenter(client.principal, client.session), plan)

    assert [(answer.facts or {}).get("approved", False) for answer in taken] == [False] * 4
    assert [ada.gateway.modes.of(client.session) for client in (bob, other)] == [Mode.PLAN] * 2
    assert all(one.name != plan.name for one in approval.plans.newest_first(bob.principal))
    assert approval.plans.find(plan.name, bob.principal) is None
    await ada.call("Config", setting="mode")
    assert ada.gateway.modes.of(ada.session) is Mode.DEFAULT
    assert {one.principal for _, one in all_plans(ada.gateway.state)} == {ada.principal, bob.principal}


async def test_a_plan_of_an_earlier_version_is_the_local_principals(tmp_path: Path) -> None:
    store = PlanStore(StateDirectory(tmp_path), "scope")
    local, ada = Presenter("local", "stdio"), Presenter("profile:ada", "stdio")
    plan = store.decide(store.save("# Old", local), PlanStatus.APPROVED)
    record = store.folder / f"{plan.name}.json"
    fields = json.loads(record.read_text())
    del fields["principal"], fields["session"]
    record.write_text(json.dumps(fields))

    assert store.newest_first("profile:ada") == []
    assert store.save("# Old", ada).status is PlanStatus.WAITING
    assert (store.save("# Old", local).name, store.save("# Old", local).status) == (plan.name, PlanStatus.APPROVED)


def test_f13_02_agents_and_their_records_are_their_principals(tmp_path: Path) -> None:
    records, live = AgentRecords(StateDirectory(tmp_path)), LiveAgents(5)
    facts = AgentFacts(id="a1", principal="ada", workspace="ws", type="t", title=MARK, name="worker")
    records.write(AgentRecord(facts, (ModelMessage("user", (text_block(MARK),)),)))
    live.add(LiveAgent("a1", "ada", "worker", MARK))

    assert records.find("worker", "ada", "ws").facts.title == MARK
    for name in ("a1", "worker"):
        with pytest.raises(ToolError) as refused:
            records.find(name, "bob", "ws")
        assert MARK not in str(refused.value)
        assert live.find(name, "bob") is None
    assert live.of_principal("bob") == []


async def test_the_users_own_notes_are_not_for_clients_with_a_profile(clients: tuple[Client, Client]) -> None:
    ada, bob = clients
    local = Client(ada.gateway, "local", "stdio")
    await local.call("memento__note", action="write", name="mine", content=MARK, scope="global")

    seen = [await client.read("goat://memory") for client in (local, bob)]
    refused = [
        await bob.call("memento__note", action=action, name="mine", content="x", scope="global")
        for action in ("read", "write", "append", "delete")
    ]

    assert ["mine" in (text or "") for text in seen] == [True, False]
    assert {answer.error_code for answer in refused} == {"E_PERMISSION"}
    assert ada.gateway.on_demand.more_instructions(2_000) == ""


NAMES = (
    "a",
    "a:b",
    "a:b:c",
    "",
    ":",
    "::",
    "a%3Ab",
    "a%",
    "%3A",
    "profile:ro",
    "profile",
    "session",
    "a b",
    "é",
    "stdio",
)


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_f13_02_session_keys_of_two_principals_are_never_equal(version: str) -> None:
    keys: dict[str, tuple[str, str]] = {}
    for principal, client in itertools.product(NAMES, NAMES):
        who = CallerIdentity("http", cast("Any", None))
        info = SimpleNamespace(client_info=SimpleNamespace(name=client))
        request = SimpleNamespace(headers={"mcp-session-id": client})
        ctx = SimpleNamespace(protocol_version=version, request=request, session=SimpleNamespace(client_params=info))
        key = who.session_key(cast("Any", ctx), principal)
        assert keys.setdefault(key, (principal, client)) == (principal, client)
    assert len(keys) == len(NAMES) ** 2


OWNER_PARAMETERS = {"principal", "session", "session_key", "ctx", "presenter", "author", "decider", "principals"}
LOOKUPS: Mapping[type, Mapping[str, str]] = {
    PlanStore: dict.fromkeys(("text", "mark", "decide"), "of a plan that was looked up, or is announced"),
    PlanApproval: {},
    SessionModes: {
        "decided": "for a process that goes on in this one's place",
        "resume": "from the process before",
        "use": "the settings, which are the operator's",
    },
    RememberedRules: dict.fromkeys(("oldest_first", "forget"), "the command line, which is the operator's"),
    Review: dict.fromkeys(("diff",), "of a change that was looked up"),
    SessionStage: {},
    CallLog: {},
    Todos: {},
    SessionSettings: {
        "on_change": "a part of this process",
        "changed_elsewhere": "read again by their sessions",
    },
    Sessions: {},
    SpillFiles: dict.fromkeys(
        ("is_open", "create", "write", "prune", "keep_pruned"), "in the folder of the running call's principal"
    ),
    TaskManager: {
        "check_room": "a count",
        **dict.fromkeys(("stop", "forget"), "of a task that was looked up"),
        "stop_all": "the end of the server",
        "stop_taken": "of a task that another replica has; shows nothing",
    },
    TaskRecords: dict.fromkeys(("write", "forget", "prune"), "shows nothing"),
    AgentRecords: {"write": "shows nothing", "keep": "the record names the principal"},
    LiveAgents: {
        "add": "the agent names its principal",
        "remove": "shows nothing",
        "still_running": "an error's words",
    },
    AgentBus: {"catalog": "types of agents, which are the workspace's"},
    TeamCoordinator: {},
    UriOwnership: {"forget": "an upstream that is gone"},
    Memories: dict.fromkeys(
        ("project_folder", "project_file", "global_folder"), "a path; files of the workspace are everybody's"
    ),
    SessionFolders: {"close": "the end of the server"},
}


@pytest.mark.parametrize("store", LOOKUPS, ids=lambda store: store.__name__)
def test_f13_02_stores_have_no_lookup_without_an_owner(store: type) -> None:
    methods = {
        name: set(inspect.signature(method).parameters)
        for name, method in inspect.getmembers(store, inspect.isfunction)
        if not name.startswith("_") and name not in getattr(store, "__dataclass_fields__", {})
    }

    without = {name for name, parameters in methods.items() if not parameters & OWNER_PARAMETERS}

    assert without == set(LOOKUPS[store])


ON_DISK = {
    "plans": "the record names principal and session",
    "tasks": "the record names the principal",
    "agents": "the record names the principal",
    "teams": "a folder for each principal",
    "spill": "a folder for each principal",
    "sandbox": "temporary folders are named by principal and session",
    "rules": "each line names the principal",
    "review": "the record names principal and session",
    "changes": "the record names principal and session; only the command line reads it",
    "state.db": "todos by workspace and principal, settings by session",
    "http": "tokens and keys of the server",
    "pins": "definitions of upstreams, which are the operator's",
    "catalog": "definitions of upstreams, which are the operator's",
    "logins": "by resource and principal",
    "compiled_handlers": "made of the operator's own tools",
    "secrets": "the operator's; what the operator configured names them",
    "status": "of the process, for the command line",
    "install": "what the command line changed in hosts",
}


def test_f13_02_stores_on_disk_have_a_row() -> None:
    named: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        named |= set(re.findall(r"\bstate\.folder\(\s*\"([^\"]+)\"", source))

    assert named - set(ON_DISK) == set(), "a folder of the state directory without a row here"


HOLDS_NOTHING_OF_CALLERS = (
    "agents/models",
    "calls/audit",
    "calls/extensions/installed",
    "catalog/catalog",
    "catalog/offerings",
    "catalog/presets",
    "catalog/registry",
    "catalog/schemas",
    "catalog/search",
    "catalog/search_index",
    "catalog/search_spelling",
    "cli/hosts",
    "commands/compression",
    "commands/sandbox",
    "core",
    "files/documents",
    "files/editing",
    "files/workspace",
    "gateway/gateway",
    "gateway/status",
    "manifests",
    "processes/computing",
    "settings/claude",
    "settings/settings",
    "tools",
    "upstreams/cache",
    "upstreams/config",
    "upstreams/faults",
    "upstreams/listing",
    "upstreams/oauth",
    "upstreams/pinning",
    "upstreams/transports/child_pipes",
    "upstreams/transports/connect",
    "upstreams/transports/direct_posts",
    "upstreams/transports/frames",
    "upstreams/transports/http_transport",
    "upstreams/transports/notifications",
    "upstreams/transports/stdio_transport",
    "upstreams/upstreams",
    "web/http",
    "web/pages",
)
"""Places whose state is of the process, of an upstream, of one call, or of a file that everybody may read."""
IN_MEMORY = {
    "cli/resident/linux_fork_server:ForkServer._sessions": "by process; what a session sends stays in its fork",
    "upstreams/sharing/process_host:ProcessHost._shared": "by launch, whose account is the principal",
    "upstreams/owners/owners:Owners._owned": "by entry, workspace and account",
    "server/replicas/upstream_hops:UpstreamHops._sessions": "by a random name that only the opening replica knows",
    "upstreams/sharing/multiplexer:Multiplexer._pending": "by session's connection, of one launch",
    "upstreams/sharing/multiplexer:Multiplexer._questions": "by session's connection, of one launch",
    "upstreams/sharing/multiplexer:Multiplexer._watched": "by session's connection, of one launch",
    "upstreams/sharing/multiplexer:_Handshake.result": "what the process says of itself, of one launch",
    "gateway/upstream_tasks:UpstreamTaskCalls._ended": "by principal",
    "gateway/approvals/change_source:ChangeSource._requests": "the owner's queue, by staged change",
    "gateway/approvals/definition_source:DefinitionSource._requests": "the owner's queue, by definition",
    "gateway/diagnostics:Diagnostics.features": "of the process, for the operator",
    "server/ui/login:Session.notes": "by session of the page",
    "server/ui/login:Sessions._sessions": "by cookie; the owner's alone",
    "server/ui/pins:PinsView._known": "the owner's page",
    "server/ui/server_logins:ServerLogins._pending": "the owner's page",
    "server/ui/trials:Trials._trials": "the owner's page",
    "processes/process_tree:ProcessTree._seen": "processes of one command",
    "processes/windows_command:ThreadedPipes._readers": "threads of one command",
    "processes/windows_job:Jobs._jobs": "of the process, by child",
    "agents/spawner:LiveAgents._live": OWN,
    "agents/records:AgentFacts.worktree": "a field of a record",
    "agents/agent_types:AgentTypes.types": "files of the workspace",
    "calls/concurrency_limiter:CallLimiter._away": OWN,
    "calls/observability/call_metrics:CallMetrics._rows": "names of tools; for the operator",
    "calls/observability/call_metrics:CallMetrics._errors": "counts by tool; for the operator",
    "calls/concurrency_limiter:CallLimiter._of_depth": "counts",
    "files/changes/staged_files:SessionStage._ids": "by session",
    "calls/extensions/extension_points:Steps._hidden": "by session",
    "catalog/resource_catalog:ResourceCatalogs._catalogs": "by profile; holds no answers",
    "catalog/resource_catalog:UriOwnership._sessions": "by session",
    "calls/hooks/session_events:SessionEvents._begun": "by session",
    "calls/permissions/permission:Permission._merged": OWN,
    "calls/permissions/plan_approval:PlanApproval._waiting": "by principal and session",
    "calls/permissions/remembered:RememberedRules._rules": OWN,
    "calls/permissions/session_modes:SessionModes._decided": "by session",
    "server/requests:Requests._notices": "by session",
    "server/change_notifications:ChangeHub._clients": "by connection, which names its principal",
    "server/change_notifications:ChangeHub._streams": OWN,
    **dict.fromkeys(
        (
            "server/change_notifications:_Client.uris",
            "server/change_notifications:_Client._pending",
            "server/change_notifications:_Streams.uris",
            "server/change_notifications:_Streams._metas",
        ),
        "of one principal",
    ),
    "server/change_notifications:ChangeHub._lists_changed": "names of lists, and for whom",
    "server/change_notifications:ChangeHub._updated": "by URI and who hears of it",
    "server/cancellations:Cancellations._said": "by session, whose id is its principal's",
    "server/client_roots:ClientRoots._known": "by session",
    "server/stdio/frame_writer:FrameWriter._held_back": "of one connection",
    "server/http/connections:Connections._strangers": "of connections that have shown no token",
    "server/http/principal_limits:PrincipalRates._buckets": OWN,
    "server/http/shared_rates:SharedRates._spent": OWN,
    "server/http/principal_limits:PrincipalRates.spent": OWN,
    "state/redis/shared_files:SharedFiles._unreadable": "by group of files; their readers know the principals",
    "server/http/shared_rates:SharedRates._totals": OWN,
    "server/shared_bus:SharedBus._listeners": "by subscription; what each may hear is checked where it is told",
    "state/redis/events:SharedEvents._listeners": "by kind of event; parts of this process",
    "state/redis/shared_files:SharedFiles._known": "by group of files; their readers know the principals",
    "state/redis/shared_files:SharedFiles._sent": "by group of files; their readers know the principals",
    "server/identity/jwt_tokens:JwtTokens._checked": "by a token's hash: whose it is",
    "server/identity/provider_keys:ProviderKey._loaded": "public keys",
    "server/http/sessions:PrincipalSessions._sessions": OWN,
    **dict.fromkeys(
        ("server/http/session_calls:CallsOfSession.running", "server/http/session_calls:CallsOfSession.questions"),
        "of one session, which only its principal gets",
    ),
    "server/http/fast_path:HttpFastPath._known": "how clients introduce themselves; says nothing of who may call",
    "server/http/fast_path:HttpFastPath._mirroring": "schemas of tools",
    "server/http/principal_limits:FairShares._held": OWN,
    "server/handlers/resource_lists:ResourceLists._lists": "lists of upstreams, by rights",
    "server/calling_client:LogLevels._levels": "by session",
    "server/stdio/frame_writer:OpenRequests._ids": "of one connection",
    "server/replicas/gate:HopPrincipals._admitted": "by a random token of one request",
    "server/replicas/this_replica:ThisReplica.apps": "what is served, of nobody",
    "state/replicas/registry:ReplicaRegistry._gone": "by replica, of nobody",
    "state/replicas/registry:ReplicaRegistry._live": "by replica, of nobody",
    "web/hops/signature:HopChecks._seen": "by the random mark of one request",
    "server/suspended_call:SuspendedCall._questions": "of one call",
    "server/suspended_calls:SuspendedCalls._suspended": "by a random token; the owner's session is compared",
    **dict.fromkeys(
        ("server/stdio/fast_path:FastPath._running", "server/stdio/fast_path:FastPath._tasks"), "stdio only"
    ),
    "server/handlers/tool_list:ToolList._ready": "the list of tools, by rights",
    "commands/shell/known_values:KnownValues._values": "of one script",
    "state/call_log:CallLog._calls": OWN,
    "state/resources:PlanChanges._seen": OWN,
    "state/session_settings:MemoryConfigStore._sessions": "by session",
    "state/session_settings:SessionSettings._known": "by session",
    "state/sessions:ReadLedger._seen": "of one session",
    "state/sessions:Sessions._by_key": "by session",
    "state/todos:MemoryTodoStore._lists": "by workspace and principal",
    "state/todos:Todos._known": "by workspace and principal",
    "commands/tasks/manager:TaskManager._tasks": "by a random id; the principal is compared",
    "calls/long_calls:LongCalls.by_call_id": "by a call's random id, for the call itself",
    "commands/tasks/manager:TaskManager._watchers": "by a random id; shown to nobody",
    "commands/tasks/held_work:HeldWork._held": "by a random id; shown to nobody",
    "server/replicas/task_takeover:TaskTakeover._waiting": "by a random id; the record names the principal",
    "agents/takeover:AgentTakeover._newest": "by a random id; shown to nobody",
    "server/http/stream_events:StreamEvents._events": "each names its session, which asks for it",
    "server/http/stream_events:SessionEvents._numbers": "of one session",
    "commands/tasks/task:Task._read_up_to": "by session",
    "agents/teams/bus:AgentBus._for_clients": "by principal and session",
    "agents/teams/bus:AgentBus._requests": "by a random id; the principal is compared",
    **dict.fromkeys(
        ("agents/teams/coordinator:TeamCoordinator._mail", "agents/teams/coordinator:TeamCoordinator._teams"), OWN
    ),
    "agents/teams/coordinator:TeamCoordinator._idle_watchers": OWN,
    "agents/teams/team:Team.members": "of one team",
    "gateway/skill_calls:SkillCalls._noted": "reasons already logged, by URI of an upstream's skill",
    "upstreams/skills:UpstreamSkills._listed": "an upstream's own list",
    "upstreams/skills:UpstreamSkills._unlisted": "an upstream's own entries, which a list left out",
    "upstreams/connection_pool:ConnectionPool._latest": "by session",
    "upstreams/eras:UpstreamEras.speaks": "what an upstream speaks",
    "upstreams/calls/login_elicitation:LoginElicitation._current": "by workspace; only operators are asked",
    "upstreams/calls/login_elicitation:ElicitedLogin._questions": "by session; only operators are asked",
    "upstreams/calls/output_check:OutputCheck._known": "schemas of an upstream",
    "upstreams/calls/output_check:OutputCheck._unchecked": "schemas of an upstream",
    "upstreams/calls/subscriptions:Subscriptions._counts": "a count",
    "upstreams/calls/watches:Watches._at": "by session",
    "upstreams/calls/watches:Watches._subscriptions": "by connection; who watches there is by session",
    "upstreams/client_views:ClientViews._compared": "whether two lists are the same",
    "upstreams/client_views:ClientViews._items": "by connection, which is of one principal",
    "upstreams/client_views:ClientViews._seen": "by connection, which is of one principal",
    "upstreams/transports/dispatcher:UpstreamDispatcher.clients": "by request, which is of one client",
    "upstreams/transports/progress_meta:ProgressMeta._waiting": "by request, which is of one client",
    "upstreams/calls/subscriptions:Subscriptions._refused": "what the upstream said",
    "upstreams/calls/subscriptions:Subscriptions._turns": "locks",
    "upstreams/transports/callers:Callers._notices": "of one connection, which is of one principal",
    "upstreams/transports/connection:Connection._param_headers": "schemas of an upstream",
    "upstreams/transports/callers:Callers._of_url": "of one connection, which is of one principal",
    "settings/watched_settings:WatchedSettings._states": "files of the operator",
}


def holders() -> Iterator[str]:
    """Attributes that hold things by key, as `module:Class.attribute`."""
    kinds = ("dict[", "OrderedDict", "defaultdict", "Counter", "WeakValueDictionary")
    for path in sorted(PACKAGE.rglob("*.py")):
        module = path.relative_to(PACKAGE).with_suffix("").as_posix()
        if any(module == place or module.startswith(f"{place}/") for place in HOLDS_NOTHING_OF_CALLERS):
            continue
        for owner in (node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.ClassDef)):
            for node in ast.walk(owner):
                target, kind = None, ""
                if isinstance(node, ast.AnnAssign) and node.value is not None:
                    target, kind = node.target, ast.unparse(node.annotation)
                elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                    target, kind = node.targets[0], ast.unparse(node.value.func)
                if target is None or not kind.startswith(kinds):
                    continue
                if isinstance(target, ast.Attribute):
                    yield f"{module}:{owner.name}.{target.attr}"
                elif isinstance(target, ast.Name) and node in owner.body:
                    yield f"{module}:{owner.name}.{target.id}"


def test_f13_02_stores_in_memory_have_a_row() -> None:
    found = set(holders())

    assert found - set(IN_MEMORY) == set(), "a store without a row here: by what principal or session is it looked up?"
    assert set(IN_MEMORY) - found == set(), "rows of stores that are gone"
