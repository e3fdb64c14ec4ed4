#!/usr/bin/env bash
# What an AWS account needs once for cluster.yaml: the bucket $BUCKET, the roles of head and nodes, and
# a security group. docs/cluster.md leads through it. What is there already is said and left.
set -u
export AWS_PAGER=
cd "$(mktemp -d)"

aws s3 mb s3://$BUCKET
cat > trust.json <<END
{"Version": "2012-10-17", "Statement": [
  {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]}
END
cat > bucket.json <<END
{"Version": "2012-10-17", "Statement": [
  {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "arn:aws:s3:::$BUCKET"},
  {"Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"],
   "Resource": "arn:aws:s3:::$BUCKET/*"}]}
END
cat > nodes.json <<END
{"Version": "2012-10-17", "Statement": [
  {"Effect": "Allow", "Action": ["ec2:Describe*", "ec2:RunInstances"], "Resource": "*"},
  {"Effect": "Allow", "Action": "ec2:CreateTags", "Resource": "*",
   "Condition": {"StringEquals": {"ec2:CreateAction": "RunInstances"}}},
  {"Effect": "Allow", "Action": ["ec2:CreateTags", "ec2:TerminateInstances"], "Resource": "*",
   "Condition": {"StringEquals": {"aws:ResourceTag/ray-cluster-name": "attention-study"}}},
  {"Effect": "Allow", "Action": "ssm:GetParameters", "Resource": "arn:aws:ssm:*::parameter/aws/service/*"},
  {"Effect": "Allow", "Action": "iam:PassRole", "Resource": "arn:aws:iam::*:role/attention-study-node"}]}
END
for role in attention-study-head attention-study-node; do
  aws iam create-role --role-name $role --assume-role-policy-document file://trust.json
  aws iam put-role-policy --role-name $role --policy-name bucket --policy-document file://bucket.json
  aws iam create-instance-profile --instance-profile-name $role
  aws iam add-role-to-instance-profile --instance-profile-name $role --role-name $role
done
aws iam put-role-policy --role-name attention-study-head --policy-name nodes --policy-document file://nodes.json
MY_ADDRESS=$(curl -s https://checkip.amazonaws.com)
aws ec2 create-security-group --group-name attention-study --description "SSH from one address"
aws ec2 authorize-security-group-ingress --group-name attention-study --ip-permissions \
  '[{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupName": "attention-study"}]},
    {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "'$MY_ADDRESS'/32"}]}]'
aws iam create-service-linked-role --aws-service-name spot.amazonaws.com ||
  echo "The account has that role already if it has used spot instances before: this is no fault."
