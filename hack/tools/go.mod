module github.com/tidewaiter/tidewaiter/hack/tools

go 1.26.0
