module github.com/einmal-operators/einmal/credential/ssm

go 1.26.0

replace (
	github.com/einmal-operators/einmal => ../..
	github.com/einmal-operators/einmal/awslab => ../../awslab
)
