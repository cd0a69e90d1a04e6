module goodput.dev/testcluster/tools/pause

go 1.25.0
