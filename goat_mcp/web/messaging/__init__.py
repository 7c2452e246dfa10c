"""What the tools for messengers share: an account, calls of a Web API, long texts in parts, files that come in.

What each messenger's methods are called is in its own tool (`manifests/telegram`, `manifests/slack`).
"""
