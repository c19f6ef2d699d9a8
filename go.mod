module github.com/a3s-lab/liba3s

go 1.26
