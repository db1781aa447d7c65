module raybus.invalid/dev/pause

go 1.26
