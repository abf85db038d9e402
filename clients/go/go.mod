module gradserve.example/gradserve

go 1.24
