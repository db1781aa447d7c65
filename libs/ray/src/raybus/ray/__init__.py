"""The Ray dashboard's REST interface.

`client` sends and has the calls; `address` says where a dashboard is; `answers` and `submission` are pure; `errors` is
the one family of what goes wrong. Import from these modules.
"""
