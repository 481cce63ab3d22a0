module github.com/einmal-operators/einmal/operators/volumeclaim

go 1.26.0

require github.com/einmal-operators/einmal v0.0.0

replace github.com/einmal-operators/einmal => ../..
