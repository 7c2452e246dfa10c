"""Tools as well-known servers have them, in our own words, and what people ask for: the query set of DEF-4.

A line is `name(parameters): description`; a query names the tool that is meant. The queries were written without
looking at how the search works, and weights were not tuned on them.
"""

from __future__ import annotations

SERVERS = {
    "github": """
create_issue(owner, repo, title, body, labels): Opens a new issue in a repository.
get_issue(owner, repo, issue_number): Details of one issue.
list_issues(owner, repo, state, labels): Issues of a repository, filtered by state and label.
update_issue(owner, repo, issue_number, title, state): Changes title, text or state of an issue.
add_issue_comment(owner, repo, issue_number, body): Writes a comment under an issue.
create_pull_request(owner, repo, title, head, base): Proposes the changes of one branch for another.
merge_pull_request(owner, repo, pull_number, merge_method): Merges a pull request into its base branch.
get_pull_request_diff(owner, repo, pull_number): The changed lines of a pull request.
list_pull_requests(owner, repo, state): Pull requests of a repository.
create_pull_request_review(owner, repo, pull_number, event, body): Approves a pull request or asks for changes.
create_branch(owner, repo, branch, from_branch): Makes a branch from another.
list_commits(owner, repo, sha): History of a branch.
search_code(q, sort): Finds source code across repositories.
fork_repository(owner, repo): Copies a repository into an account.
create_repository(name, private): Makes a new repository.
get_file_contents(owner, repo, path, ref): Reads a file or folder of a repository.
list_workflow_runs(owner, repo, workflow_id): Runs of a GitHub Actions workflow.
""",
    "gitlab": """
create_merge_request(project_id, source_branch, target_branch, title): Opens a merge request.
list_pipelines(project_id, ref, status): CI pipelines of a project.
retry_pipeline(project_id, pipeline_id): Starts the failed jobs of a pipeline again.
get_job_log(project_id, job_id): Output of a CI job.
""",
    "slack": """
post_message(channel, text): Sends a message to a channel.
reply_to_thread(channel, thread_ts, text): Answers in a thread.
list_channels(limit, cursor): Channels of the workspace.
get_channel_history(channel, limit): Recent messages of a channel.
add_reaction(channel, timestamp, emoji): Puts an emoji on a message.
get_users(cursor): People of the workspace with their profiles.
upload_file(channels, content, filename): Shares a file in a channel.
set_status(status_text, expiration): Changes your own status.
""",
    "filesystem": """
read_text_file(path, head, tail): Contents of a file as text.
write_file(path, content): Creates a file or replaces its contents.
edit_file(path, edits, dryRun): Replaces lines in a text file.
create_directory(path): Makes a folder, with its parents.
list_directory(path): Names of the files and folders in a directory.
directory_tree(path): Recursive view of a folder as JSON.
move_file(source, destination): Moves or renames a file.
get_file_info(path): Size, times and permissions of a file.
search_files(path, pattern): Finds files by name below a folder.
""",
    "postgres": """
execute_query(sql, params): Runs a SQL statement and gives its rows.
list_tables(schema): Tables of a database schema.
describe_table(table): Columns, types and keys of a table.
explain_query(sql): Execution plan of a statement, with costs.
list_slow_queries(limit): Statements that took longest.
create_index(table, columns): Adds an index over columns.
""",
    "playwright": """
browser_navigate(url): Opens a URL in the browser.
browser_click(element, ref): Clicks on an element of the page.
browser_type(element, text, submit): Types text into an input field.
browser_take_screenshot(filename, fullPage): Picture of the page.
browser_snapshot(): Accessibility tree of the page.
browser_select_option(element, values): Chooses from a dropdown.
browser_file_upload(paths): Gives files to a file chooser.
browser_console_messages(level): What the page logged to the console.
browser_network_requests(): HTTP requests since the page was loaded.
browser_tabs(action, index): Opens, closes or selects a tab.
browser_wait_for(text, time): Waits until text shows up or goes away.
browser_evaluate(function): Runs JavaScript on the page.
""",
    "notion": """
search_pages(query, filter): Finds pages and databases by title.
create_page(parent, properties, children): Adds a page.
get_page(page_id): Properties of a page.
append_block_children(block_id, children): Adds text to the end of a page.
query_database(database_id, filter, sorts): Rows of a database.
delete_block(block_id): Puts a block into the trash.
create_comment(page_id, rich_text): Leaves a remark on a page.
""",
    "linear": """
create_issue(teamId, title, description, priority): Files a new issue for a team.
list_my_issues(status): Issues that are assigned to you.
update_issue_status(issueId, stateId): Moves an issue to another workflow state.
list_cycles(teamId): Sprints of a team.
create_project(name, teamIds, targetDate): Starts a project.
list_teams(): Teams of the organisation.
""",
    "jira": """
search_issues_jql(jql, maxResults): Finds tickets with a JQL expression.
transition_issue(issueKey, transitionId): Moves a ticket to another status.
assign_issue(issueKey, accountId): Gives a ticket to someone.
add_worklog(issueKey, timeSpent): Logs time spent on a ticket.
get_sprint_report(boardId, sprintId): What was finished in a sprint.
link_issues(inwardIssue, outwardIssue, type): Connects two tickets, e.g. as blocked by.
""",
    "google_calendar": """
list_events(calendarId, timeMin, timeMax): Events in a range of time.
create_event(summary, start, end, attendees): Schedules an event and invites people.
update_event(eventId, start, end): Reschedules an event.
delete_event(eventId): Cancels an event.
find_free_time(attendees, duration): When all attendees are available.
respond_to_event(eventId, response): Accepts or declines an invitation.
""",
    "gmail": """
send_email(to, subject, body): Sends a mail.
search_emails(query, maxResults): Finds mails in the mailbox.
read_email(messageId): One mail with its text.
draft_email(to, subject, body): Saves a mail as a draft.
modify_labels(messageId, addLabelIds, removeLabelIds): Adds or removes labels of a mail.
delete_email(messageId): Removes a mail for good.
download_attachment(messageId, attachmentId, savePath): Saves an attachment to disk.
create_filter(criteria, action): Sorts incoming mail automatically.
""",
    "google_drive": """
search_files(query): Finds documents in Drive.
read_file_content(fileId): Text of a document, spreadsheet or presentation.
share_file(fileId, email, role): Gives somebody access.
export_as_pdf(fileId): Converts a document to PDF.
list_recent_files(pageSize): What was opened lately.
""",
    "sentry": """
list_issues(project, query): Errors of a project.
get_issue_details(issueId): Stack trace and tags of an error.
resolve_issue(issueId): Marks an error as fixed.
list_releases(project): Versions that were deployed.
get_trace(traceId): Spans of a distributed trace.
""",
    "stripe": """
create_customer(name, email): Adds a customer.
list_invoices(customer, limit): Invoices of a customer.
create_refund(payment_intent, amount): Pays a charge back.
create_payment_link(price, quantity): URL where someone can pay.
cancel_subscription(subscription): Ends a recurring plan.
retrieve_balance(): Money on the account.
list_disputes(charge): Chargebacks.
create_coupon(name, percent_off): Makes a discount.
""",
    "kubernetes": """
get_pods(namespace, labelSelector): Pods of a namespace and how they are.
get_pod_logs(pod, namespace, tail): Output of a container.
scale_deployment(name, replicas): Sets the number of replicas.
apply_manifest(manifest): Creates or updates resources from YAML.
delete_resource(kind, name): Removes a resource of the cluster.
exec_in_pod(pod, command): Runs a command in a container.
rollout_undo(name): Returns a deployment to its previous revision.
port_forward(pod, localPort, podPort): Makes a pod's port reachable here.
get_events(namespace): What happened in the cluster.
""",
    "docker": """
list_containers(all): Containers of this machine.
run_container(image, ports, env): Starts a container from an image.
stop_container(container): Ends a running container.
build_image(context, tag): Builds an image from a Dockerfile.
prune_volumes(): Frees disk space of unused volumes.
compose_up(file): Brings up the services of a compose file.
""",
    "aws": """
list_s3_buckets(): S3 buckets of the account.
upload_s3_object(bucket, key, body): Stores an object in a bucket.
invoke_lambda(functionName, payload): Runs a Lambda function.
describe_ec2_instances(filters): Virtual machines and their state.
get_cost_and_usage(start, end): What the account spent.
query_cloudwatch_logs(logGroup, query): Searches application logs.
put_secret_value(secretId, value): Stores a secret.
""",
    "figma": """
get_file_nodes(fileKey, nodeIds): Layers of a design.
export_images(fileKey, ids, format): Renders layers as PNG or SVG.
list_comments(fileKey): Feedback on a design.
get_design_tokens(fileKey): Colours and type styles.
""",
    "brave": """
web_search(query, count): Searches the internet.
news_search(query, freshness): Searches current news.
local_search(query, location): Finds places nearby.
""",
    "maps": """
geocode_address(address): Coordinates of an address.
get_directions(origin, destination, mode): Route between two places.
distance_matrix(origins, destinations): Travel times between many places.
search_nearby(location, radius, type): Restaurants, shops and the like around a point.
get_elevation(locations): Height above sea level.
""",
    "memory": """
create_entities(entities): Remembers new things in the knowledge graph.
add_observations(observations): Notes facts about known things.
search_nodes(query): Looks in the knowledge graph.
delete_relations(relations): Forgets how things are connected.
""",
    "spotify": """
play_track(uri, device): Starts playback of a song.
pause_playback(): Pauses the music.
create_playlist(name, public): Makes a playlist.
add_to_queue(uri): Plays a song next.
""",
    "weather": """
get_forecast(latitude, longitude, days): Weather of the coming days.
get_alerts(state): Storm and flood warnings.
get_current_conditions(location): Temperature and wind now.
""",
    "hubspot": """
create_contact(email, firstname, company): Adds a person to the CRM.
list_deals(pipeline, stage): Sales opportunities.
log_call(contactId, notes): Records a phone call.
""",
}

QUERIES = {
    "file a bug in our repository": "github__create_issue",
    "comment on an issue": "github__add_issue_comment",
    "open a pull request from my branch": "github__create_pull_request",
    "merge a PR pull request": "github__merge_pull_request",
    "see what lines a pull request changed": "github__get_pull_request_diff",
    "approve a pull request": "github__create_pull_request_review",
    "commit history of a branch": "github__list_commits",
    "find source code that uses a function": "github__search_code",
    "status of actions workflow runs": "github__list_workflow_runs",
    "read a file from a github repo": "github__get_file_contents",
    "rerun the failed pipeline": "gitlab__retry_pipeline",
    "why did the CI job fail, show its log": "gitlab__get_job_log",
    "send a slack message to a channel": "slack__post_message",
    "answer in a thread": "slack__reply_to_thread",
    "what was said recently in a channel": "slack__get_channel_history",
    "react with an emoji": "slack__add_reaction",
    "rename a file": "filesystem__move_file",
    "make a new folder": "filesystem__create_directory",
    "how big is this file": "filesystem__get_file_info",
    "show the folder structure": "filesystem__directory_tree",
    "run a sql query": "postgres__execute_query",
    "which columns does the users table have": "postgres__describe_table",
    "query plan of a slow statement": "postgres__explain_query",
    "what tables are in the database": "postgres__list_tables",
    "take a screenshot of the web page": "playwright__browser_take_screenshot",
    "click the login button": "playwright__browser_click",
    "fill in a form field with text": "playwright__browser_type",
    "javascript console errors of the page": "playwright__browser_console_messages",
    "go to a website in the browser": "playwright__browser_navigate",
    "choose an option from a dropdown": "playwright__browser_select_option",
    "add a page in notion": "notion__create_page",
    "filter rows of a notion database": "notion__query_database",
    "issues assigned to me": "linear__list_my_issues",
    "sprints of my team": "linear__list_cycles",
    "log time on a jira ticket": "jira__add_worklog",
    "move the ticket to done status": "jira__transition_issue",
    "assign a ticket to a colleague": "jira__assign_issue",
    "search tickets with JQL": "jira__search_issues_jql",
    "schedule a meeting with two people": "google_calendar__create_event",
    "when is everybody free": "google_calendar__find_free_time",
    "what is on my calendar tomorrow": "google_calendar__list_events",
    "decline an invitation": "google_calendar__respond_to_event",
    "cancel the meeting": "google_calendar__delete_event",
    "write an email to a customer": "gmail__send_email",
    "find emails from my boss": "gmail__search_emails",
    "save an attachment of a mail": "gmail__download_attachment",
    "save a draft": "gmail__draft_email",
    "give someone access to a document": "google_drive__share_file",
    "convert a doc to pdf": "google_drive__export_as_pdf",
    "stack trace of an error": "sentry__get_issue_details",
    "mark error as resolved": "sentry__resolve_issue",
    "refund a payment": "stripe__create_refund",
    "invoices of a customer": "stripe__list_invoices",
    "end a customer's subscription": "stripe__cancel_subscription",
    "make a discount coupon": "stripe__create_coupon",
    "how much money is on the account": "stripe__retrieve_balance",
    "logs of a pod": "kubernetes__get_pod_logs",
    "scale a deployment to five replicas": "kubernetes__scale_deployment",
    "roll back a deployment": "kubernetes__rollout_undo",
    "apply yaml to the cluster": "kubernetes__apply_manifest",
    "start a container from an image": "docker__run_container",
    "build a docker image": "docker__build_image",
    "free disk space of unused volumes": "docker__prune_volumes",
    "upload an object to an s3 bucket": "aws__upload_s3_object",
    "call a lambda function": "aws__invoke_lambda",
    "how much did we spend on aws this month": "aws__get_cost_and_usage",
    "export a layer as svg": "figma__export_images",
    "feedback on the design": "figma__list_comments",
    "search the internet": "brave__web_search",
    "latest news about a topic": "brave__news_search",
    "driving route between two cities": "maps__get_directions",
    "coordinates of an address": "maps__geocode_address",
    "restaurants near me": "maps__search_nearby",
    "remember a fact about a person": "memory__add_observations",
    "play a song": "spotify__play_track",
    "weather for the next days": "weather__get_forecast",
    "storm warnings": "weather__get_alerts",
    "add a contact to the crm": "hubspot__create_contact",
}
