module github.com/einmal-operators/einmal/awslab

go 1.26.0
