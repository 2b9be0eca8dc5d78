module bench-json-go

go 1.19
