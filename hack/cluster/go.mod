module github.com/tidewaiter/tidewaiter/hack/cluster

go 1.26.0
