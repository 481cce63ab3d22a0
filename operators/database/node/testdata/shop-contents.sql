create table customers (id int auto_increment primary key, name varchar(100) not null unique, data blob, attributes json) comment 'a comment of
CREATE DEFINER=`two`@`%` lines';
insert into customers (name, data, attributes) select concat('name ', seq), unhex(md5(seq)), json_object('n', seq) from seq_1_to_50000;
insert into customers (name, data) values ('CREATE DEFINER=`a`@`b` FUNCTION', 0x00ff0a27), ('\n/*!50013 DEFINER=`a`@`b` SQL SECURITY DEFINER */', '(');
create table orders (id bigint auto_increment primary key, customer int not null references customers (id), total decimal(10,2) check (total >= 0),
	note text, twice decimal(11,2) as (total * 2) stored);
insert into orders (customer, total, note) select seq, seq / 7, 'grüße 🎉' from seq_1_to_50000;
create table prices (id int primary key, price int) with system versioning;
insert into prices values (1, 1);
update prices set price = 2;
create table notes (text varchar(20)) engine = aria;
insert into notes values ('kept');
create sequence numbers start with 100;
create user reporting@'%';
grant all on app.* to reporting@'%';
create definer = reporting@'%' view big as select * from orders where total > 100;
create definer = reporting@'%' trigger trimmed before insert on customers for each row set new.name = trim(new.name);
create definer = reporting@'%' function twice(n int) returns int deterministic return 2 * n;
create definer = reporting@'%' event nightly on schedule every 1 day do delete from notes where text = '';
