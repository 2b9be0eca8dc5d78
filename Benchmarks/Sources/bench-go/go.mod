module bench-go

go 1.19

require shapes v0.0.0

replace shapes => ../shapes-go
