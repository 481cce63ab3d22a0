module github.com/einmal-operators/einmal/tools

go 1.26.0
