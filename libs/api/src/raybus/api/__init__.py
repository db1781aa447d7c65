"""Types, subjects, routes and decisions of Raybus: pure, no input or output."""
