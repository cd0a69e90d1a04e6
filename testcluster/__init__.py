"""A real one-node Kubernetes and an S3 server on one bare Debian machine, for the project's tests.

Run as ``python3 -m testcluster up|down|images`` from the repository's root. Only the standard library is
used: nothing of the project needs to be installed before the cluster is up.
"""
