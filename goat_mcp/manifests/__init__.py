"""Documents that declare tools, upstreams, toolsets and profiles, and the tools they become. Not here: the tools that
ship with us, which lie in `manifests/` at the top and are read the same way."""
