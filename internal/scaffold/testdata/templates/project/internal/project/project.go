package project

const Name = "unrendered"
